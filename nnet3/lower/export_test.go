package lower

var ErrUnsupported = errUnsupported
