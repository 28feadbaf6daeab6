"""Obfuscation (paper 004): real searches among dummy ones, in a file or live.

A method is a `base.CoverMethod`; `registry.COVERS` names the built-in ones and those of plug-ins.
"""
