package builtin

import (
	"math"

	"github.com/heddle-live/heddle/engine/value"
)

var timeAdd = define(Spec{
	Name:   "time_add",
	Group:  Time,
	Params: []string{"ts", "ms"},
	Doc:    "The time so many milliseconds later, like `ts + ms`.",
	Functions: []Function{
		two(value.Timestamp, value.Int, value.Timestamp,
			func(a []value.Value) (value.Value, error) {
				v, err := addInts(a)
				if err != nil {
					return value.Value{}, failure(Overflow, "time_add", a)
				}
				return value.OfTimestamp(v.Int()), nil
			}),
	},
	Examples: []Example{
		gives(at("2026-11-30T12:00:01Z"), at("2026-11-30T12:00:00Z"), 1000),
		fails(Overflow, at("2026-11-30T12:00:00Z"), math.MaxInt64),
	},
})
