"""Coefficients of the blend, as learnt: rows are facts of the question, columns facts of a candidate (see blend.py).

Learnt by a listwise softmax loss, each collection counting the same; see docs/decisions/008-fusion.md for the data and the
figures with each collection left out.
"""

from __future__ import annotations

import numpy as np

COEFFICIENTS = np.array(
    [
        [-0.2706, 0.2300, -0.7717, 0.6460, 0.4318, -0.3676],  # constant
        [-0.1585, -0.9999, 0.0139, -0.8969, -0.0987, -0.4686],  # level of the best cosine
        [-0.0444, 0.2329, 0.3454, 0.0274, 0.0439, -0.1246],  # lead of the first by cosine
        [-0.0385, 0.0772, 0.5007, 0.1883, 0.2941, -0.1974],  # lead over the tenth by cosine
        [-0.1961, 0.0920, -0.1243, -0.1787, -0.1059, -0.0159],  # lead of the first by BM25
        [-0.2078, 0.3298, -0.1050, 0.2594, 0.0180, 0.1055],  # lead over the tenth by BM25
        [-0.1518, -0.3138, -0.1845, -0.5790, -0.0367, -0.0403],  # part of the words found
        [-0.1427, -0.2577, -0.2107, -0.0369, -0.0259, -0.1256],  # agreement of the two tops
        [0.0009, -0.2316, -0.1588, -0.6489, -0.2261, -0.1181],  # mean rarity of the words
        [0.1678, 0.3412, 0.3283, 0.3818, 0.1658, 0.1140],  # rarity of the rarest word
        [-0.0542, -0.0658, -0.1345, 0.1918, -0.1168, -0.0994],  # number of words
        [0.0039, -0.2290, 0.1833, 0.0746, 0.2967, -0.0645],  # BM25 of the first by cosine
        [0.1243, -0.2219, 0.5566, 0.0210, 0.2736, -0.0320],  # cosine of the first by BM25
        [-0.0290, 0.4930, 0.1784, 0.4831, 0.0304, 0.0763],  # relative lead by BM25
        [0.0160, 0.1724, 0.1208, 0.0096, -0.0170, 0.0027],  # share of the lead in the spread by cosine
        [0.0421, 0.1630, 0.3121, 0.0727, 0.1386, -0.0185],  # share of the lead in the spread by BM25
    ]
)
