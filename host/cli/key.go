package cli

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/heddle-live/heddle/engine/value"
	"github.com/heddle-live/heddle/sdk/frame"
)

var (
	plainInt   = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	plainFloat = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
)

// parseKey reads one value for each parameter of the view or action, such as "view
// mine".
func parseKey(what string, parameters []frame.Column, texts []string) ([]any, error) {
	var names []string
	for _, p := range parameters {
		names = append(names, p.Name+": "+p.Type.String())
	}
	wrong := func(format string, args ...any) error {
		return &Error{
			Code: ExitUsage, Text: fmt.Sprintf(format, args...),
			Hint: fmt.Sprintf("%s(%s) takes one KEY for each parameter",
				what, strings.Join(names, ", ")),
		}
	}
	if len(texts) != len(parameters) {
		return nil, wrong("%s for %s", counted(len(texts), "value"),
			counted(len(parameters), "parameter"))
	}
	key := make([]any, len(texts))
	for i, p := range parameters {
		v, what := keyValue(p.Type, texts[i])
		if what != "" {
			return nil, wrong("parameter %s: expected %s, got %q", p.Name, what, texts[i])
		}
		key[i] = v
	}
	return key, nil
}

// keyValue reads a value as programs and JSON spell it and no other way. If it
// cannot, expected says what belongs there.
func keyValue(kind frame.Type, text string) (v any, expected string) {
	switch kind {
	case frame.Int:
		if !plainInt.MatchString(text) {
			return nil, "an int such as -7"
		}
		i, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Sprintf("an int from %d to %d", math.MinInt64, math.MaxInt64)
		}
		return i, ""
	case frame.Float:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || !plainFloat.MatchString(text) {
			return nil, "a float such as -1.5 or 2e10"
		}
		return f, ""
	case frame.Bool:
		switch text {
		case "true":
			return true, ""
		case "false":
			return false, ""
		}
		return nil, "true or false"
	case frame.BytesType:
		if b, ok := frame.ParseBase64(text); ok {
			return b, ""
		}
		return nil, "bytes in base64 with padding such as AP8="
	case frame.TimestampType:
		if ms, ok := value.ParseTime(text); ok {
			return frame.Timestamp(ms), ""
		}
		if ms, err := strconv.ParseInt(text, 10, 64); err == nil && plainInt.MatchString(text) {
			return frame.Timestamp(ms), ""
		}
		return nil, "milliseconds since 1970 or a time such as 2026-11-30T12:00:00Z"
	default:
		return text, ""
	}
}
