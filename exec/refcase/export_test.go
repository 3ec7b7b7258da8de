package refcase

var ErrCase = errCase
