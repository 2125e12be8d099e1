package builtin

import "math"

var tangent = define(Spec{
	Name:      "tan",
	Group:     Maths,
	Params:    []string{"x"},
	Doc:       "The tangent of an angle in radians.",
	Functions: numeric("tan", math.Tan),
	Examples:  []Example{gives(0.0, 0), gives(1.557407724654902, 1.0)},
})
