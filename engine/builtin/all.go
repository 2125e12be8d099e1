package builtin

// all is every function and operator, in the order of the reference page.
var all = []*Spec{
	add, subtract, multiply, divide, remainder,
	length, concat,
	toInt,
}
