package builtin

import (
	"unicode/utf8"

	"github.com/heddle-live/heddle/engine/value"
)

var toString = define(Spec{
	Name:   "to_string",
	Group:  Casts,
	Params: []string{"x"},
	Doc: "The text of a value: numbers and bools as a program spells them, timestamps by RFC " +
		"3339 (by their milliseconds outside of the years 0 to 9999), bytes as UTF-8.",
	Functions: []Function{
		one(value.String, value.String,
			func(a []value.Value) (value.Value, error) { return a[0], nil }),
		one(value.Int, value.String, spell),
		one(value.Float, value.String, spell),
		one(value.Bool, value.String, spell),
		one(value.Timestamp, value.String, stringOfTime),
		one(value.Bytes, value.String, stringOfBytes),
	},
	Examples: []Example{
		gives("-7", -7), gives("1.5", 1.5), gives("2.0", 2.0), gives("true", true),
		gives("2026-11-30T12:00:00.5Z", at("2026-11-30T12:00:00.500Z")),
		gives("grün", value.OfBytes("gr\xc3\xbcn")),
		fails(BadCast, value.OfBytes("\xff")),
	},
})

func spell(a []value.Value) (value.Value, error) { return value.OfString(a[0].String()), nil }

func stringOfTime(a []value.Value) (value.Value, error) {
	if s, ok := value.FormatTime(a[0].Int()); ok {
		return value.OfString(s), nil
	}
	return spell(a)
}

func stringOfBytes(a []value.Value) (value.Value, error) {
	if !utf8.ValidString(a[0].Str()) {
		return value.Value{}, failure(BadCast, "to_string", a)
	}
	return value.OfString(a[0].Str()), nil
}
