// Package comment implements the command that posts the result of a comparison on a pull or merge
// request, as one comment that is edited in place.
package comment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/spotter-dev/spotter/eval/format"
	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/policy/figures"
)

// timeout bounds the time of all calls to the server together.
const timeout = 2 * time.Minute

// A call is the values of the flags of the command comment.
type call struct{ key, link string }

// Command returns the command comment.
func Command(p *cli.Program) *cobra.Command {
	var f call
	c := &cobra.Command{
		Use:   "comment FILE",
		Short: "Post what eval found on the pull or merge request of a CI job, in one comment that is kept up to date",
		Long: "comment posts FILE, which `spotter eval --out comment=FILE` writes, on the pull request of\n" +
			"a GitHub job or the merge request of a GitLab job. The comment carries a hidden mark, by\n" +
			"which the next call finds it and edits it. Where eval found nothing new, one that is there\n" +
			"is edited and none is begun.\n\n" +
			"It needs GITHUB_TOKEN with pull-requests: write, or GITLAB_TOKEN with the scope api.\n" +
			"Without one, without the right to write, and where the server does not answer, it says so\n" +
			"and ends with 0: a pull request of a fork has no token, and a comment is no gate.",
		Example: "  spotter comment comment.md --link \"$CI_JOB_URL/artifacts/file/report.html\"",
		Args:    cli.Arguments(cobra.ExactArgs(1)),
		RunE:    func(c *cobra.Command, args []string) error { return run(c.Context(), p, &f, args[0]) },
	}
	flags := c.Flags()
	flags.StringVar(&f.key, "key", "default", "tells the comments of several jobs apart: `NAME`")
	flags.StringVar(&f.link, "link", "", "address `URL` of the whole report, put below the comment")
	return c
}

func run(ctx context.Context, p *cli.Program, f *call, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return cli.Invalid(err, "give the file that `spotter eval --out comment=FILE` wrote")
	}
	body, begin, err := f.body(text)
	if err != nil {
		return err
	}
	at, err := findThread(p.Version)
	if err != nil {
		return err
	}
	say := func(level, text string) {
		text = figures.Plain(text) // a response may contain line breaks, after which a workflow command could follow
		if at.github && level != "" {
			text = "::" + level + " title=spotter::" + strings.ReplaceAll(text, "%", "%25")
		}
		fmt.Fprintln(p.Stdout, text)
	}
	switch {
	case at.list == "":
		say("", "no pull or merge request: no comment")
		return nil
	case at.token == "":
		say("notice", "no comment: there is no token; the text is in "+path)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	done, err := at.post(ctx, f.mark(), body, begin)
	var refused *statusError
	switch {
	case errors.As(err, &refused) && refused.rights():
		say("notice", fmt.Sprintf("no comment: the token may not write here (%v); a fork's may not, and the text is in %s",
			err, path))
	case err != nil:
		say("warning", "no comment: "+err.Error())
	default:
		say("", done)
	}
	return nil
}

// mark returns the hidden start of the comment, which identifies it.
func (f *call) mark() string { return "<!-- spotter eval: " + f.key + " -->" }

// body returns the text of the comment, and whether a new comment may be created with it.
func (f *call) body(text []byte) (body string, begin bool, err error) {
	if strings.Contains(f.key, "-->") || strings.ContainsAny(f.key, "\r\n") {
		return "", false, cli.Invalid(fmt.Errorf("--key: %q cannot be hidden in a comment", f.key), "give a word")
	}
	rest, quiet := bytes.CutPrefix(text, []byte(format.CommentQuiet+"\n"))
	body = f.mark() + "\n" + string(rest)
	if f.link != "" {
		u, err := url.Parse(f.link)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" ||
			strings.ContainsAny(f.link, "() \t\r\n<>") {
			return "", false, cli.Invalid(fmt.Errorf("--link: %q is not the address of a page", f.link), "give it as https://…")
		}
		body += "\n[The whole report, with charts](" + f.link + ")\n"
	}
	return body, !quiet, nil
}
