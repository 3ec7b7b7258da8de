package repro

var Classify = classify
