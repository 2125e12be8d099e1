// Package process runs the server under a bench as a process of its own, so
// that its processor time and memory are its own, and reads both from outside:
// the measured program does nothing for it. Benches call it; it measures no
// latency and knows no protocol.
package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Limits of starting and ending a server.
const (
	readyTimeout = 60 * time.Second // a start may replay a journal
	stopTimeout  = 20 * time.Second // then it is killed
	outputMax    = 16 << 10         // bytes of its error output kept for a report
)

// Child is a running server. Methods are for one goroutine.
type Child struct {
	// Ready is the first line that it printed, without the line's end.
	Ready  string
	cmd    *exec.Cmd
	stdin  io.Closer
	stderr *tail
	ended  chan struct{} // closed when Wait has returned
	err    error         // of Wait, after ended
}

// StartSelf starts this executable again with other arguments and waits until
// it prints its first line to standard output, which says that it is ready and
// where. The child's standard input is a pipe that closes when this process
// ends, however it ends. If ctx ends the child is killed.
func StartSelf(ctx context.Context, env []string, args ...string) (*Child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own executable: %w", err)
	}
	c := &Child{
		cmd: exec.CommandContext(ctx, self, args...), stderr: &tail{max: outputMax},
		ended: make(chan struct{}),
	}
	c.cmd.Env = append(os.Environ(), env...)
	c.cmd.Stderr = c.stderr
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	ready := make(chan string, 1)
	go func() {
		// Reading to the end lets the child print more; Wait may only be called
		// after it.
		lines := bufio.NewReader(stdout)
		line, _ := lines.ReadString('\n')
		ready <- strings.TrimSpace(line)
		_, _ = io.Copy(io.Discard, lines)
		c.err = c.cmd.Wait()
		close(c.ended)
	}()
	select {
	case c.Ready = <-ready:
	case <-time.After(readyTimeout):
	}
	if c.Ready == "" {
		_ = c.cmd.Process.Kill()
		<-c.ended
		return nil, fmt.Errorf("server did not become ready: %w%s", c.err, c.stderr.text())
	}
	return c, nil
}

// Stop ends the child: it closes its standard input, interrupts it, and kills
// it if it is still there after 20 seconds. It returns what the child ended
// with; having been interrupted is no error.
func (c *Child) Stop() error {
	_ = c.stdin.Close()
	_ = c.cmd.Process.Signal(os.Interrupt)
	select {
	case <-c.ended:
	case <-time.After(stopTimeout):
		_ = c.cmd.Process.Kill()
		<-c.ended
		return fmt.Errorf("server did not stop within %v and was killed", stopTimeout)
	}
	if exit, ok := errors.AsType[*exec.ExitError](c.err); ok && exit.ExitCode() < 0 {
		return nil // ended by the signal itself
	}
	if c.err != nil {
		return fmt.Errorf("server: %w%s", c.err, c.stderr.text())
	}
	return nil
}

// CPU returns the processor time that the child has used so far, user and
// system, all threads, in nanoseconds of resolution where the system has it.
func (c *Child) CPU() (time.Duration, error) { return cpuTime(c.cmd.Process.Pid) }

// RSS returns the child's resident memory in bytes.
func (c *Child) RSS() (int64, error) { return residentBytes(c.cmd.Process.Pid) }

// tail keeps the last bytes written to it, for one writer.
type tail struct {
	max int
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - t.max; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

// text returns what was kept, to be appended to a sentence. Only valid after
// the writer is done.
func (t *tail) text() string {
	if len(t.buf) == 0 {
		return ""
	}
	return "\n" + strings.TrimSpace(string(t.buf))
}

// Bounds of Settle.
const (
	settleStep  = 50 * time.Millisecond
	settleQuiet = time.Millisecond // of processor time in one step
	settleMax   = 3 * time.Second
)

// Settle waits until the child is idle, so that what it still does about an
// earlier phase (acknowledgements, compactions) is not counted to the next. It
// gives up quietly after three seconds: a server may never be quite idle.
func (c *Child) Settle(ctx context.Context) error {
	ticker := time.NewTicker(settleStep)
	defer ticker.Stop()
	before, err := c.CPU()
	for range settleMax / settleStep {
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		var now time.Duration
		now, err = c.CPU()
		if now-before < settleQuiet {
			return err
		}
		before = now
	}
	return nil
}
