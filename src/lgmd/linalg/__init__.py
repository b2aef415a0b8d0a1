"""Pure array functions: no model, no data types, nothing that knows what a factor is.

``threads`` and ``row_systems`` carry the compiled kernels, ``conjugate_gradients`` and ``sylvester`` the
linear systems, ``cholesky`` and ``logdet`` the precision matrices, ``pairs`` the search for edges.
"""
