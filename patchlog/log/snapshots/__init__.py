"""Snapshots: the dataset at a version of a log, as a file of Jelly-RDF that is made of the one before and of patches.

A quad is its line of N-Quads here, without the end of the line: terms are canonical, so equal quads are equal bytes,
and the codec reads and writes such lines by the block.
"""
