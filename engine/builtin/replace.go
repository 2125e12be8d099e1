package builtin

import (
	"strings"

	"github.com/heddle-live/heddle/engine/value"
)

var replace = define(Spec{
	Name:   "replace",
	Group:  Text,
	Params: []string{"s", "find", "by"},
	Doc: "The text with each `find` in it replaced by `by`, from left to right. An empty `find` " +
		"is found nowhere.",
	Functions: []Function{{
		Params: []value.Kind{value.String, value.String, value.String}, Result: value.String,
		Eval: evalReplace,
	}},
	Examples: []Example{
		gives("a-b-c", "a.b.c", ".", "-"),
		gives("ba", "aaa", "aa", "b"),
		gives("abc", "abc", "", "-"),
	},
})

func evalReplace(a []value.Value) (value.Value, error) {
	s, find, by := a[0].Str(), a[1].Str(), a[2].Str()
	if find == "" {
		return a[0], nil
	}
	// Counted first, so that a result over the limit is never built.
	if n := strings.Count(s, find); len(s)+n*(len(by)-len(find)) > LengthMax {
		return value.Value{}, failure(TooLong, "replace", a)
	}
	return value.OfString(strings.ReplaceAll(s, find, by)), nil
}
