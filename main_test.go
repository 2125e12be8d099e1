package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/heddle-live/heddle/host"
)

// runCommand runs a command line and returns its output and exit code.
func runCommand(t *testing.T, args ...string) (string, int) {
	t.Helper()
	var out bytes.Buffer
	root := newRoot()
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.SetArgs(host.Arguments(args))
	err := root.ExecuteContext(t.Context())
	code := host.Report(&out, err)
	return out.String(), code
}

func TestWrongCommandLines(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // a demo that starts after all stays here
	for _, c := range []struct{ line, want string }{
		{"nope", `heddle has no command "nope"`},
		{"wach g v 1", "did you mean watch?"},
		{"--nope", "unknown flag: --nope"},
		{"serve now", "heddle serve does not take these arguments: now"},
		{"serve --nope", "unknown flag: --nope"},
		{"serve --data-listen 192.0.2.1:1", "data_listen"},
		{"serve --config no-such-file", "no-such-file"},
		{"demo --listen foo", `--listen "foo": expected host:port`},
		{"demo --writes-per-second NaN", "--writes-per-second NaN: expected 0, or 0.001 to 1000"},
		{"demo --writes-per-second 1e-10", "--writes-per-second 1e-10: expected 0"},
		{"demo --writes-per-second -1", "--writes-per-second -1"},
		{"demo --writes-per-second +Inf", "--writes-per-second +Inf"},
		{"version 2", "heddle version does not take these arguments"},
		{"bench nope", `heddle bench has no command "nope"`},
		{"bench floor --transport tcp", `--transport "tcp": want quic or webtransport`},
		{"bench views --transport ws", `--transport "ws": want quic or webtransport`},
		{"bench floor --keys 0", "--keys 0"},
		{"watch g v", "heddle watch takes GRAPH VIEW KEY..."},
		{"query g", "heddle query takes GRAPH QUERY"},
	} {
		t.Run(c.line, func(t *testing.T) {
			out, code := runCommand(t, strings.Fields(c.line)...)
			if code != 2 || !strings.Contains(out, c.want) {
				t.Errorf("exit code %d\n%s\nwant 2 with %q", code, out, c.want)
			}
		})
	}
}

func TestEveryCommandHasAnExample(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if !c.Hidden && c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for _, below := range c.Commands() {
			walk(below)
		}
	}
	walk(newRoot())
	for _, line := range []string{"", "bench"} {
		out, code := runCommand(t, strings.Fields(line)...)
		if code != 0 || !strings.Contains(out, "Examples:") || strings.Contains(out, "completion") {
			t.Errorf("heddle %s: exit code %d\n%s", line, code, out)
		}
	}
}
