package suggest

import "testing"

func TestNearest(t *testing.T) {
	for _, c := range []struct {
		name, want string
		candidates []string
	}{
		{"lenn", "len", []string{"lower", "len"}},
		{"uper", "upper", []string{"lower", "upper"}},
		{"usre", "user", []string{"us", "user", "usrs"}},
		{"x", "X", []string{"Y", "X"}},
		{"orders", "", []string{"alerts", "users"}},
		{"orders", "", nil},
	} {
		if got := Nearest(c.name, c.candidates); got != c.want {
			t.Errorf("Nearest(%q, %v) = %q, want %q", c.name, c.candidates, got, c.want)
		}
	}
}
