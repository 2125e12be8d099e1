package builtin

import "github.com/heddle-live/heddle/engine/value"

var timestamp = define(Spec{
	Name:   "timestamp",
	Group:  Casts,
	Params: []string{"x"},
	Doc:    "The time of milliseconds since 1970 in UTC, or of a text of RFC 3339.",
	Functions: []Function{
		one(value.Int, value.Timestamp, func(a []value.Value) (value.Value, error) {
			return value.OfTimestamp(a[0].Int()), nil
		}),
		one(value.String, value.Timestamp, timeOfString),
	},
	Examples: []Example{
		gives(at("1970-01-01T00:00:01Z"), 1000),
		gives(at("2026-11-30T11:00:00Z"), "2026-11-30T12:00:00+01:00"),
		fails(BadCast, "2026-11-30"),
	},
})

func timeOfString(a []value.Value) (value.Value, error) {
	ms, ok := value.ParseTime(a[0].Str())
	if !ok {
		return value.Value{}, failure(BadCast, "timestamp", a)
	}
	return value.OfTimestamp(ms), nil
}
