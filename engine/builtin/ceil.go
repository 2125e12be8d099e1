package builtin

import "math"

var ceiling = define(Spec{
	Name:      "ceil",
	Group:     Maths,
	Params:    []string{"x"},
	Doc:       "The smallest whole number from `x` on, of the type of `x`.",
	Functions: whole("ceil", math.Ceil),
	Examples:  []Example{gives(2.0, 1.5), gives(0.0, -0.5), gives(7, 7)},
})
