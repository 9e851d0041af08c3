# make without a target lists the targets.

MODULE   := github.com/deadletteroffice/dlo
VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT   := $(shell git log -1 --format='-X main.commit=%h -X main.date=%cs' --abbrev=8 2>/dev/null)
LDFLAGS  := -s -w -X main.version=$(VERSION) $(COMMIT)
FUZZTIME ?= 10m
# The platforms of make release.
TARGETS  ?= linux/amd64 linux/arm64
# The folders with our own Go files.
FOLDERS  := $(wildcard cmd internal migrations static web)
# Runs linters and similar tools. Their versions are in a go.mod file of their own.
TOOL     := go tool -modfile=.ci/tools.mod
# The checkers of static/js and web/openapi.json. .ci/js/install installs them.
JS       := .cache/js/node_modules/.bin

.DEFAULT_GOAL := help
.PHONY: help build demo demo-fix pictures test test-full test-matrix brokers soak bench fuzz check generate release release-check docs

help: ## print this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## bin/dlo, a static binary
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/dlo ./cmd/dlo

demo: ## a private RabbitMQ, services of which two have bugs, and the dashboard; installs what is missing; Ctrl-C ends it all
	@echo 'compiling the demo (some 15 s; the first time a minute or two)'
	@go build -o bin/demo ./cmd/demo
	@exec bin/demo

demo-fix: ## let the letters of a running demo pass when they are requeued
	@go run ./cmd/demo fix

pictures: ## the pictures of README and docs, made from the demo (Debian, root)
	@.ci/install rabbitmq-server chromium-headless-shell apngasm
	rm -rf .cache/pictures
	DLO_TEST=full DLO_TEST_REQUIRE=1 DLO_PICTURES=$(CURDIR)/.cache/pictures go test -count=1 -timeout 20m -run TestTheStoryInABrowser ./cmd/demo
	apngasm .cache/pictures/story.png .cache/pictures/frames/001.png -z2
	cp .cache/pictures/*.png docs/img/

test: ## what the README promises, each proved once, on a real RabbitMQ and in a real browser; installs them where missing
	@.ci/install gcc libc6-dev rabbitmq-server chromium-headless-shell nginx-light
	go vet -trimpath ./...
	@DLO_TEST_REQUIRE=1 go run ./.ci/test

test-full: ## every test, almost all with the race detector, after make brokers; with DLO_TEST=rest only those that make test leaves out
	@.ci/install gcc libc6-dev rabbitmq-server chromium-headless-shell nginx-light apache2 libapache2-mod-auth-openidc caddy groff-base hugo nodejs npm python3-pika python3-celery python3-zstandard python3-qpid-proton php-cli php-amqplib
	@.ci/consumers
	@.ci/promtool
	@.ci/brokers
	go -C .ci/release run ./lint
	@.ci/site/build
	@# The demo builds dlo in this way. Building it now saves the tests the wait.
	CGO_ENABLED=0 go build -trimpath -o /dev/null ./cmd/dlo
	@DLO_TEST=$${DLO_TEST:-full} DLO_TEST_REQUIRE=1 go run ./.ci/test

test-matrix: ## the broker tests on further RabbitMQ versions, after make brokers
	@.ci/test-matrix

brokers: ## fetch further RabbitMQ versions into .cache/ (Debian, root)
	@.ci/brokers

soak: ## the fault tests at full size, and the race detector on SQLite as well: hours
	@.ci/install rabbitmq-server nodejs npm python3-pika python3-celery python3-zstandard python3-qpid-proton php-cli php-amqplib
	@.ci/consumers
	@.ci/promtool
	DLO_SOAK=1 go -C internal/payload/corpus test -count=1 -timeout 0 -v ./...
	DLO_SOAK=1 DLO_TEST=full DLO_TEST_REQUIRE=1 go test -count=1 -timeout 0 -v ./internal/store ./internal/system
	DLO_SOAK=1 DLO_TEST=full go test -count=1 -timeout 0 -v -run TwoTeams ./web
	DLO_SOAK=1 DLO_TEST=full DLO_TEST_REQUIRE=1 go test -count=1 -timeout 0 -v -run Cluster ./internal/testenv ./internal/rabbitmq
	DLO_TEST=full DLO_TEST_REQUIRE=1 go test -race -count=1 -timeout 0 $(filter-out %/system %/testenv,$(shell go list ./internal/...))

bench: ## the measured numbers
	@.ci/install rabbitmq-server chromium-headless-shell
	DLO_BENCH=1 DLO_TEST_REQUIRE=1 go test -count=1 -timeout 0 -run TestBench -v ./internal/system ./internal/payload ./internal/topology
	DLO_SOAK=1 go -C internal/payload/corpus test -count=1 -v ./untuned

fuzz: ## every fuzz target for FUZZTIME each (default 10m)
	@grep -rnoE '^func Fuzz[A-Za-z0-9_]+' --include='*_test.go' $(FOLDERS) | sed -E 's/^(.*)\/[^:]*:[0-9]+:func (.*)/\1 \2/' | \
	while read -r folder target; do \
		echo "$$target in $$folder for $(FUZZTIME)"; \
		go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "./$$folder" </dev/null || exit 1; \
	done

check: generate ## what has to pass before a commit
	git diff --exit-code -- '*_templ.go'
	go vet -trimpath ./...
	GOOS=windows go vet -trimpath ./cmd/dlo
	$(TOOL) staticcheck ./...
	@unformatted=$$($(TOOL) gofumpt -l $(FOLDERS)) && [ -z "$$unformatted" ] || { echo "not formatted; gofumpt -w:"; echo "$$unformatted"; exit 1; }
	$(TOOL) actionlint -shellcheck= -pyflakes= .github/workflows/*.yaml
	@.ci/install nodejs npm
	@.ci/js/install
	$(JS)/tsc --project .ci/js
	$(JS)/biome lint --config-path=.ci/js --error-on-warnings static/js
	REDOCLY_TELEMETRY=off $(JS)/redocly lint --config=.ci/js/redocly.yaml web/openapi.json
	$(JS)/spectral lint --fail-severity=warn --ruleset=.ci/js/spectral.yaml web/openapi.json
	go test -trimpath -short ./...
	@.ci/libc-version

generate: ## the Go code of the templ files
	@.ci/templ-version
	$(TOOL) templ generate

release: ## archives, packages, image, chart and SBOM in dist/, for TARGETS, which can also be darwin/arm64 or windows/amd64
	go -C .ci/release run . '$(VERSION)' '$(LDFLAGS)' $(TARGETS)

release-check: ## build a release twice from a clean clone, compare, install each file, and see a first letter arrive in each
	@.ci/install rabbitmq-server debootstrap rpm bubblewrap systemd
	go run ./.ci/release-check

docs: ## the documents as a static site with search, in dist/site (Debian)
	@.ci/install hugo nodejs npm
	@.ci/site/build
