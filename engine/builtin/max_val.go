package builtin

import "github.com/heddle-live/heddle/engine/value"

var maxVal = define(Spec{
	Name:   "max_val",
	Group:  Choice,
	Params: []string{"a", "b"},
	Doc: "The larger of two values of one type, or of an int that is taken as a float and a " +
		"float. With null on one side it is null.",
	Functions: choice(func(a []value.Value) (value.Value, error) {
		if value.Compare(a[0], a[1]) >= 0 {
			return a[0], nil
		}
		return a[1], nil
	}),
	Examples: []Example{
		gives(3, 2, 3), gives(2.0, 2, 1.5), gives(3.5, 2, 3.5), gives("b", "b", "a"),
	},
})
