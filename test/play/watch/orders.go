package watch

import (
	"bufio"
	"context"
	"io"
)

// lines sends what is read, line by line, and closes at its end. The goroutine ends with
// in, or at the next line once ctx has ended.
func lines(ctx context.Context, in io.Reader) <-chan string {
	all := make(chan string)
	go func() {
		defer close(all)
		for s := bufio.NewScanner(in); s.Scan(); {
			select {
			case all <- s.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return all
}
