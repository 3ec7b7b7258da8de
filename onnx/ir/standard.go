package ir

import "slices"

// standard are ONNX's own operators, up to opset 28. Their results are as the newest version says;
// where an older one says something else, Legacy tells.
var standard = slices.Concat(standardMath, standardLogic, standardProducts, standardReductions, standardShapes, standardIndexing, standardWindows, standardNorms, standardAttention,
	standardRecurrent, standardQuantization, standardRandom, standardSignals, standardControl, standardSequences, standardStrings, standardTraining,
	contribNorms, contribActivations, contribProducts, contribAttention, contribQuantization, contribBlocked, contribOthers)
