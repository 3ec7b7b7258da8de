package rulecheck

var Canonical = canonical
