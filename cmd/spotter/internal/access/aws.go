package access

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spotter-dev/spotter/internal/cli"
	"github.com/spotter-dev/spotter/live/aws"
)

// awsWait is the timeout for responses from AWS. searchWait replaces it if only an instance role
// could provide credentials: outside EC2, no server answers that lookup.
const (
	awsWait    = 15 * time.Second
	searchWait = 4 * time.Second
)

// AWSWait returns the timeout for responses from AWS.
func AWSWait() time.Duration {
	if credentialsStated() {
		return awsWait
	}
	return searchWait
}

// credentialsStated reports whether a source other than an instance role provides credentials.
func credentialsStated() bool {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"} {
		if os.Getenv(name) != "" {
			return true
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return false
	}
	for _, name := range []string{"credentials", "config"} {
		if _, err := os.Stat(filepath.Join(home, ".aws", name)); err == nil {
			return true
		}
	}
	return false
}

// AWSRefusal describes why AWS returned no prices within wait.
func AWSRefusal(err error, wait time.Duration) string {
	var asked *aws.RequestError
	switch {
	case errors.Is(err, aws.ErrNoCredentials):
		return "no AWS credentials were found"
	case errors.Is(err, aws.ErrExpired):
		return "the AWS credentials have expired"
	case errors.Is(err, aws.ErrPermission) && errors.As(err, &asked):
		return "the AWS credentials may not " + asked.Action
	case errors.Is(err, aws.ErrCredentials):
		return "AWS refuses the credentials"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, aws.ErrTimeout):
		return fmt.Sprintf("AWS did not give them within %v", wait)
	case errors.Is(err, aws.ErrUnreachable):
		return "AWS cannot be reached"
	case errors.Is(err, aws.ErrNothing):
		return "AWS has none for these types"
	}
	return cli.FirstLine(err)
}
