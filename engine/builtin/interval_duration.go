package builtin

import "github.com/heddle-live/heddle/engine/value"

var intervalDuration = define(Spec{
	Name:   "interval_duration",
	Group:  Time,
	Params: []string{"start", "end"},
	Doc:    "The milliseconds from `start` to `end`, like `end - start`.",
	Functions: []Function{
		two(value.Timestamp, value.Timestamp, value.Int,
			func(a []value.Value) (value.Value, error) {
				return difference("interval_duration", a[1], a[0], a)
			}),
	},
	Examples: []Example{
		gives(3600000, at("2026-11-30T12:00:00Z"), at("2026-11-30T13:00:00Z")),
	},
})
