"""A CSR matrix with SciPy's layout, without SciPy."""

import numpy as np


class Csr:
    """CSR matrix of a dense array; zeros are omitted."""

    def __init__(self, X):
        X = np.asarray(X)
        present = X != 0  # true for missing values, which stay as NaN
        self.shape = X.shape
        self.indptr = np.r_[0, present.sum(axis=1).cumsum()].astype(np.int32)
        self.indices = np.nonzero(present)[1].astype(np.int32)
        self.data = X[present]
