package builtin

import "math"

var exponential = define(Spec{
	Name:      "exp",
	Group:     Maths,
	Params:    []string{"x"},
	Doc:       "The number e to the power of `x`.",
	Functions: numeric("exp", math.Exp),
	Examples:  []Example{gives(1.0, 0), gives(2.718281828459045, 1.0), fails(NotFinite, 1000)},
})
