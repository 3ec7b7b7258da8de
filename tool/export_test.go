package tool

var NewViewEngine = newViewEngine
