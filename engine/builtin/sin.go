package builtin

import "math"

var sine = define(Spec{
	Name:      "sin",
	Group:     Maths,
	Params:    []string{"x"},
	Doc:       "The sine of an angle in radians.",
	Functions: numeric("sin", math.Sin),
	Examples:  []Example{gives(0.0, 0), gives(1.0, 1.5707963267948966)},
})
