module github.com/spotter-dev/spotter

go 1.26.8
