package builtin

import "github.com/heddle-live/heddle/engine/value"

var timeDiff = define(Spec{
	Name:   "time_diff",
	Group:  Time,
	Params: []string{"a", "b"},
	Doc:    "The milliseconds from `b` to `a`, like `a - b`.",
	Functions: []Function{
		two(value.Timestamp, value.Timestamp, value.Int,
			func(a []value.Value) (value.Value, error) {
				return difference("time_diff", a[0], a[1], a)
			}),
	},
	Examples: []Example{
		gives(1500, at("2026-11-30T12:00:01.5Z"), at("2026-11-30T12:00:00Z")),
	},
})

// difference returns the milliseconds from b to a.
func difference(name string, a, b value.Value, args []value.Value) (value.Value, error) {
	v, err := subtractInts([]value.Value{a, b})
	if err != nil {
		return value.Value{}, failure(Overflow, name, args)
	}
	return v, nil
}
