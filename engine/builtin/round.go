package builtin

import "math"

var round = define(Spec{
	Name:      "round",
	Group:     Maths,
	Params:    []string{"x"},
	Doc:       "The nearest whole number, of the type of `x`; a half goes away from 0.",
	Functions: whole("round", math.Round),
	Examples:  []Example{gives(2.0, 1.5), gives(-1.0, -0.5), gives(0.0, -0.4), gives(7, 7)},
})
