package builtin

import "github.com/heddle-live/heddle/engine/value"

var substr = define(Spec{
	Name:   "substr",
	Group:  Text,
	Params: []string{"s", "start", "length"},
	Doc: "The bytes from `start`, of which the first is 0, at most `length` of them. What lies " +
		"outside of `s` is left out. Of a string no character is cut: where start or end would " +
		"lie inside of one, they move to its beginning.",
	Functions: []Function{
		{
			Params: []value.Kind{value.String, value.Int, value.Int}, Result: value.String,
			Eval: substrString,
		},
		{
			Params: []value.Kind{value.Bytes, value.Int, value.Int}, Result: value.Bytes,
			Eval: substrBytes,
		},
	},
	Examples: []Example{
		gives("ell", "hello", 1, 3),
		gives("lo", "hello", 3, 100),
		gives("he", "hello", -1, 3),
		gives("", "hello", 9, 1),
		gives("gr", "grün", 0, 3),
		gives("ün", "grün", 3, 9),
		gives(value.OfBytes("\xbc"), value.OfBytes("\xc3\xbc"), 1, 1),
	},
})

func substrString(a []value.Value) (value.Value, error) {
	s := a[0].Str()
	start, end := span(len(s), a[1].Int(), a[2].Int())
	return value.OfString(s[runeStart(s, start):runeStart(s, end)]), nil
}

func substrBytes(a []value.Value) (value.Value, error) {
	s := a[0].Str()
	start, end := span(len(s), a[1].Int(), a[2].Int())
	return value.OfBytes(s[start:end]), nil
}

// span returns the part of [start, start+length) that lies in [0, n).
func span(n int, start, length int64) (from, to int) {
	if length <= 0 || start >= int64(n) {
		return 0, 0
	}
	if start < 0 {
		// This cannot overflow, because the signs differ.
		start, length = 0, length+start
	}
	end := start + min(max(length, 0), int64(n)-start)
	return int(start), int(end)
}
