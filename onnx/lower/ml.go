package lower

var learned = map[string]func(c *call) []*value{}
