"""Know how far a positional encoding can see, before you train it.

This package shows the public names and holds no logic: the rooms ``theory``, ``numerics``,
``validation`` and ``figures`` do the work and are imported on first use, so that
``import farfield`` stays light.  No module here bears the name of a public function, since
importing it would overwrite that function.
"""
