"""Where records come from beside HTTP."""
