package builtin

import "math"

var cosine = define(Spec{
	Name:      "cos",
	Group:     Maths,
	Params:    []string{"x"},
	Doc:       "The cosine of an angle in radians.",
	Functions: numeric("cos", math.Cos),
	Examples:  []Example{gives(1.0, 0), gives(-1.0, 3.141592653589793)},
})
