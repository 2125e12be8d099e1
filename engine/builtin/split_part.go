package builtin

import (
	"strings"

	"github.com/heddle-live/heddle/engine/value"
)

var splitPart = define(Spec{
	Name:   "split_part",
	Group:  Text,
	Params: []string{"s", "separator", "n"},
	Doc: "The part with number `n` of the parts between separators. The first is 1, the last -1. " +
		"A part that does not exist is \"\". An empty separator separates nothing.",
	Functions: []Function{{
		Params: []value.Kind{value.String, value.String, value.Int}, Result: value.String,
		Eval: evalSplitPart,
	}},
	Examples: []Example{
		gives("b", "a/b/c", "/", 2), gives("c", "a/b/c", "/", -1), gives("", "a/b/c", "/", 4),
		gives("abc", "abc", "", 1), gives("", "a/b", "/", 0),
	},
})

func evalSplitPart(a []value.Value) (value.Value, error) {
	s, separator, n := a[0].Str(), a[1].Str(), a[2].Int()
	parts := 1
	if separator != "" {
		parts += strings.Count(s, separator)
	}
	if n < 0 {
		n += int64(parts) + 1
	}
	if n < 1 || n > int64(parts) {
		return value.OfString(""), nil
	}
	for ; n > 1; n-- {
		_, s, _ = strings.Cut(s, separator)
	}
	if separator != "" {
		s, _, _ = strings.Cut(s, separator)
	}
	return value.OfString(s), nil
}
