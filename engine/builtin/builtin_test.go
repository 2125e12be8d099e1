package builtin

import (
	"errors"
	"testing"

	"github.com/heddle-live/heddle/engine/value"
)

func TestExamples(t *testing.T) {
	for _, s := range all {
		covered := map[*Function]bool{}
		for _, e := range s.Examples {
			text := callText(s.Name, e.Args)
			kinds := make([]value.Kind, len(e.Args))
			for i, a := range e.Args {
				kinds[i] = a.Kind()
			}
			f, err := Resolve(s.Name, kinds)
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			covered[f] = true
			got, err := f.Eval(e.Args)
			if e.Fails != "" {
				if failed, ok := errors.AsType[*Error](err); !ok || failed.Code != e.Fails {
					t.Errorf("%s = %v, %v, want %s", text, got, err, e.Fails)
				}
				continue
			}
			if err != nil || got != e.Want {
				t.Errorf("%s = %v, %v, want %v", text, got, err, e.Want)
			}
			if want := f.Result; got.Kind() != want && (!f.Nullable || !got.IsNull()) {
				t.Errorf("%s is a %v, want %v", text, got.Kind(), want)
			}
		}
		if s.Doc == "" || len(s.Params) == 0 || len(covered) == 0 {
			t.Errorf("%s has no documentation, parameters or examples", s.Name)
		}
	}
}

func TestResolve(t *testing.T) {
	kinds := func(k ...value.Kind) []value.Kind { return k }
	for _, c := range []struct {
		name string
		args []value.Kind
		want value.Kind
	}{
		{"+", kinds(value.Int, value.Int), value.Int},
		{"+", kinds(value.Int, value.Float), value.Float},
		{"+", kinds(value.Timestamp, value.Int), value.Timestamp},
		{"-", kinds(value.Timestamp, value.Timestamp), value.Int},
		{"+", kinds(value.Null, value.Float), value.Float},
		{"+", kinds(value.Null, value.Null), value.Int},
		{"concat", kinds(value.String, value.String, value.String), value.String},
		{"concat", kinds(value.String), value.String},
	} {
		f, err := Resolve(c.name, c.args)
		if err != nil || f.Result != c.want {
			t.Errorf("Resolve(%s, %v) = %v, %v, want %v", c.name, c.args, f, err, c.want)
		}
		if again, _ := Resolve(c.name, c.args); again != f {
			t.Errorf("Resolve(%s, %v) gave two functions", c.name, c.args)
		}
	}
	for _, c := range []struct {
		name          string
		args          []value.Kind
		text, nearest string
	}{
		{"lenn", kinds(value.String), "unknown function lenn", "len"},
		{"time_now", nil, "unknown function time_now", ""},
		{
			"len", kinds(value.Int),
			"len does not take (int); there is (string) -> int, (bytes) -> int", "",
		},
		{
			"concat", nil,
			"concat does not take (); there is (string, ...) -> string, (bytes, ...) -> bytes", "",
		},
		{
			"*", kinds(value.String, value.Int), "* does not take (string, int); there is " +
				"int * int -> int, float * float -> float, int * float -> float, float * int -> float", "",
		},
	} {
		f, err := Resolve(c.name, c.args)
		failed, ok := errors.AsType[*ResolveError](err)
		if f != nil || !ok || err.Error() != c.text || failed.Nearest != c.nearest {
			t.Errorf("Resolve(%s, %v) = %v, %v, want %s", c.name, c.args, f, err, c.text)
		}
		if (failed.Hint != "") != (c.name == "time_now") {
			t.Errorf("Resolve(%s) has the hint %q", c.name, failed.Hint)
		}
	}
}

func TestNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range all {
		if seen[s.Name] {
			t.Errorf("two functions are called %s", s.Name)
		}
		seen[s.Name] = true
	}
}
