package host_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/heddle-live/heddle/host"
)

// TestReadme types the program of the README, runs its commands, and compares
// what the watch prints with what the README shows.
func TestReadme(t *testing.T) {
	_, blocks := readPage(t, "README.md")
	find := func(beginning string) block {
		for _, b := range blocks {
			if strings.HasPrefix(b.text, beginning) {
				return b
			}
		}
		t.Fatalf("no block of the README begins with %q", beginning)
		return block{}
	}
	s := startServer(t)
	t.Setenv("HEDDLE_SERVER", "http://"+s.running.AdminAddr())
	t.Setenv("HEDDLE_CONNECT", "moq://"+s.running.DataAddr())
	t.Setenv("HEDDLE_KEY", testKey)
	program, commands, shown := find("// What every shop"), find("./heddle apply"), find("# ")
	t.Chdir(t.TempDir())
	if err := os.WriteFile("shop.heddle", []byte(program.text), 0o600); err != nil {
		t.Fatal(err)
	}
	terminal := &screen{news: make(chan struct{}, 1)}
	first, rest, _ := strings.Cut(shown.text, "# revision 2\n")
	for _, args := range heddleCommands(commands.text) {
		switch args[0] {
		case "watch":
			defer terminal.start(t, args)()
			terminal.await(t, shown, first)
		default:
			var out bytes.Buffer
			if err := run(t.Context(), &out, host.Arguments(args)...); err != nil {
				t.Fatalf("heddle %s: %v", strings.Join(args, " "), err)
			}
		}
	}
	terminal.await(t, shown, "# revision 2\n"+rest)
}
