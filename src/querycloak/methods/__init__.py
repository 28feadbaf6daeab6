"""Protection methods, one a file: policy only; loops are in `kernels`, audits in `guarantees`."""
