package comment

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/spotter-dev/spotter/internal/cli"
)

const (
	pageSize = 100 // the maximum of GitHub and GitLab
	pagesMax = 100

	// answerMax is the maximum size of a response in bytes. A page of the longest comments on
	// GitHub is a quarter of it.
	answerMax = 32 << 20
)

// A thread is the comments of a pull or merge request.
type thread struct {
	github         bool
	token, version string

	// list is the URL of all comments, empty if the job does not belong to a pull or merge request.
	// A comment is edited by the HTTP method edit at the URL one + its ID.
	list, one, edit string
}

// findThread determines from the environment the thread of the job.
func findThread(version string) (*thread, error) {
	env := os.Getenv
	switch {
	case env("GITHUB_ACTIONS") == "true":
		t := &thread{github: true, token: env("GITHUB_TOKEN"), version: version, edit: http.MethodPatch}
		number, err := pullRequest(env("GITHUB_EVENT_PATH"))
		if err != nil {
			return nil, err
		}
		if number > 0 {
			issues := cmp.Or(env("GITHUB_API_URL"), "https://api.github.com") + "/repos/" + env("GITHUB_REPOSITORY") + "/issues/"
			t.list, t.one = issues+strconv.Itoa(number)+"/comments", issues+"comments/"
		}
		return t, nil
	case env("GITLAB_CI") == "true":
		t := &thread{token: env("GITLAB_TOKEN"), version: version, edit: http.MethodPut}
		if number := env("CI_MERGE_REQUEST_IID"); number != "" {
			// The project of the merge request, since the job may run in a fork.
			t.list = env("CI_API_V4_URL") + "/projects/" + url.PathEscape(env("CI_MERGE_REQUEST_PROJECT_ID")) +
				"/merge_requests/" + url.PathEscape(number) + "/notes"
			t.one = t.list + "/"
		}
		return t, nil
	}
	return nil,
		cli.Invalid(errors.New("comment: neither GITHUB_ACTIONS nor GITLAB_CI is true, so there is no job whose request could be commented on"), "call it in a job of GitHub or GitLab")
}

// pullRequest returns the number of the pull request of the event in the file at path, or 0 if the
// event has none.
func pullRequest(path string) (int, error) {
	if path == "" {
		return 0, nil
	}
	data, err := os.ReadFile(path)
	var event struct {
		PullRequest struct{ Number int } `json:"pull_request"`
	}
	if err == nil {
		err = json.Unmarshal(data, &event)
	}
	if err != nil {
		return 0, cli.Invalid(fmt.Errorf("GITHUB_EVENT_PATH: %w", err), "leave GITHUB_EVENT_PATH as GitHub sets it")
	}
	return event.PullRequest.Number, nil
}

// A statusError is an HTTP status other than 2xx.
type statusError struct{ status int }

func (e *statusError) Error() string {
	return fmt.Sprintf("the server answers %d %s", e.status, http.StatusText(e.status))
}

// rights reports whether the token lacks the right. GitHub and GitLab return 404 for objects that a
// token may not see.
func (e *statusError) rights() bool {
	return e.status == http.StatusUnauthorized || e.status == http.StatusForbidden || e.status == http.StatusNotFound
}

// A posted is a comment in the form that both servers return.
type posted struct {
	ID   int64
	Body string
}

// post edits the comment that starts with mark. Without one it posts a new comment if begin allows
// that. It returns a description of what it did.
func (t *thread) post(ctx context.Context, mark, body string, begin bool) (string, error) {
	old, err := t.find(ctx, mark)
	switch {
	case err != nil:
		return "", err
	case old == nil && !begin:
		return "nothing new: no comment", nil
	case old == nil:
		return "comment written", t.call(ctx, http.MethodPost, t.list, body, nil)
	case strings.TrimSpace(old.Body) == strings.TrimSpace(body):
		return "the comment is up to date", nil
	}
	return "comment brought up to date", t.call(ctx, t.edit, t.one+strconv.FormatInt(old.ID, 10), body, nil)
}

// find returns the first comment that starts with mark, or nil if no comment does.
func (t *thread) find(ctx context.Context, mark string) (*posted, error) {
	for page := 1; page <= pagesMax; page++ {
		var all []posted
		if err := t.call(ctx, http.MethodGet, fmt.Sprintf("%s?per_page=%d&page=%d", t.list, pageSize, page), "",
			&all); err != nil {
			return nil, err
		}
		for i := range all {
			if strings.HasPrefix(all[i].Body, mark) {
				return &all[i], nil
			}
		}
		if len(all) < pageSize {
			break
		}
	}
	return nil, nil
}

// call sends a request. Unless body is empty, it is sent as the body of a comment; unless out is
// nil, the response is decoded into out. Errors do not contain the token.
func (t *thread) call(ctx context.Context, method, address, body string, out any) error {
	var in io.Reader
	if body != "" {
		text, err := json.Marshal(map[string]string{"body": body})
		if err != nil {
			return err
		}
		in = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, address, in)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+t.token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "spotter/"+t.version)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode/100 != 2 {
		return &statusError{answer.StatusCode}
	}
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, answerMax)).Decode(out); err != nil {
		return fmt.Errorf("%s %s: %w", method, address, err)
	}
	return nil
}
