// Package component holds nnet3's component types: the layers that networks are made of, a family a
// file.
//
// [New] returns a [Component] of a type that Kaldi's name selects. It is made by a configuration
// line ([ParseConfigLine], Init) or read from a Kaldi model ([Read]), and [Write] writes it as
// Kaldi would; its method Fields says of what it consists. Propagate and Backprop compute on
// matrices that the caller owns; what they need beside these (scratch memory, random numbers) is in
// a [Workspace], so a component that computes isn't changed by it and serves any number of
// goroutines. What a component can do beyond that is said by its [Properties] and by small optional
// interfaces: [Backpropper], [NonSimple], [UpdatableComponent], [StatsStorer], [TestModer],
// [Identity], [Preparer].
//
// Components with the property Simple map rows to rows. The others implement NonSimple: the
// compiler asks them which input indexes an output index depends on, and once per computation they
// precompute where these rows are. Unlike Kaldi's, none of them wants the rows reordered or padded.
//
// Natural-gradient types compute the plain gradient. Their settings are kept, from file to file.
//
// The package does not know networks, commands or graphs.
package component
