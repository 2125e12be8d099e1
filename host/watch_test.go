package host_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/heddle-live/heddle/host"
	"github.com/heddle-live/heddle/host/cli"
)

// run executes a command line of the binary.
func run(ctx context.Context, out io.Writer, args ...string) error {
	root := &cobra.Command{Use: "heddle", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(host.Commands()...)
	root.SetOut(out)
	root.SetErr(io.Discard)
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}

func TestWatchCommand(t *testing.T) {
	s := startServer(t)
	s.apply(testProgram)
	s.write(`{"insert":{"label":[[400,"hot"]],"edge":[[400,1],[400,2]]}}`)
	for _, scheme := range []string{"moq", "https", "ws"} {
		t.Run(scheme, func(t *testing.T) {
			var out bytes.Buffer
			err := run(t.Context(), &out, "watch", "g", "hot", "400", "--once",
				"--connect", scheme+"://"+s.running.DataAddr())
			want := "# X\tY at revision 2: 2 rows\n  400\t1\n  400\t2\n"
			if err != nil || out.String() != want {
				t.Errorf("%v, %q", err, out.String())
			}
		})
	}
	for _, c := range []struct {
		name, want string
		code       int
		args       []string
	}{
		{"type", `parameter head: expected an int such as -7, got "x"`, cli.ExitUsage, []string{"g", "hot", "x"}},
		{"count", "2 values for 1 parameter", cli.ExitUsage, []string{"g", "hot", "1", "2"}},
		{"view", "there is no graph g, or it has no view cold", cli.ExitRefused, []string{"g", "cold", "1"}},
		{"graph", "there is no graph h, or it has no view hot", cli.ExitRefused, []string{"h", "hot", "1"}},
		{"key", "takes GRAPH VIEW KEY...", cli.ExitUsage, []string{"g", "hot"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := run(t.Context(), io.Discard, append(append([]string{"watch"}, c.args...),
				"--connect", "moq://"+s.running.DataAddr())...)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
			if code := host.Report(io.Discard, err); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
		})
	}
}

func TestWatchCommandFollowsChanges(t *testing.T) {
	s := startServer(t)
	s.apply(testProgram)
	s.write(`{"insert":{"label":[[400,"hot"]],"edge":[[400,1]]}}`)
	read, write := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, write, "watch", "g", "hot", "400", "--json",
			"--connect", "moq://"+s.running.DataAddr())
		_ = write.Close()
		ended <- err
	}()
	lines := bufio.NewScanner(read)
	expect := func(want string) {
		t.Helper()
		if !lines.Scan() || !strings.Contains(lines.Text(), want) {
			t.Fatalf("line %q, want %s; %v", lines.Text(), want, lines.Err())
		}
	}
	expect(`"rows":[[400,1]],"entered":[],"left":[]`)
	s.write(`{"insert":{"edge":[[400,2]]},"delete":{"edge":[[400,1]]}}`)
	expect(`"entered":[[400,2]],"left":[[400,1]]`)
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("an interrupted watch ends with %v", err)
	}
}

func TestWriteCommandTakesADeletionFirst(t *testing.T) {
	s := startServer(t)
	s.apply(testProgram)
	s.write(`{"insert":{"edge":[[1,2],[1,3],[1,4]]}}`)
	for program, want := range map[string]string{
		"-edge(1, 2)":                   "0 rows inserted, 1 deleted",
		"-edge[(1, 3)]\n+edge(1, 5)":    "1 row inserted, 1 deleted",
		"+edge(1, 6)\n-edge(1, 4)":      "1 row inserted, 1 deleted",
		"-label(7, \"- not a flag -\")": "0 rows inserted, 0 deleted",
	} {
		var out bytes.Buffer
		err := run(t.Context(), &out, host.Arguments([]string{
			"write", "g", program, "--server", "http://" + s.running.AdminAddr(), "--key", testKey,
		})...)
		if err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%q: %v, %q", program, err, out.String())
		}
	}
}
