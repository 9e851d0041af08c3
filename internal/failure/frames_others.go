package failure

import (
	"slices"
	"strings"
)

// beginsWithAny reports whether a name begins with one of the given words.
func beginsWithAny(name string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(name, w) })
}

// dottedOthers lists JVM packages and .NET namespaces that are not part of the consumer's own code.
// They are runtimes, frameworks, clients and drivers.
var dottedOthers = []string{
	"java.", "javax.", "jakarta.", "jdk.", "sun.", "com.sun.", "oracle.", "kotlin.", "kotlinx.", "scala.", "groovy.",
	"clojure.", "akka.", "org.apache.", "org.springframework.", "com.rabbitmq.",
	"org.hibernate.", "io.netty.", "reactor.", "io.micrometer.", "io.opentelemetry.", "io.quarkus.", "io.micronaut.",
	"io.vertx.", "io.smallrye.", "org.jboss.", "org.aspectj.", "com.fasterxml.", "org.postgresql.",
	"com.mysql.", "org.mariadb.", "com.zaxxer.", "feign.", "okhttp3.", "retrofit2.", "org.slf4j.", "ch.qos.logback.",
	"net.bytebuddy.", "com.google.common.", "com.google.protobuf.", "io.grpc.", "redis.clients.",
	"System.", "Microsoft.", "MassTransit.", "GreenPipes.", "NServiceBus.", "Rebus.", "Wolverine.", "JasperFx.",
	"EasyNetQ.", "RabbitMQ.", "Newtonsoft.", "Npgsql.", "MySql.", "MySqlConnector.", "Polly.", "MediatR.",
	"Autofac.", "Castle.", "AutoMapper.", "Dapper.", "Serilog.", "Marten.", "StackExchange.", "Grpc.",
	"Google.Protobuf.", "MongoDB.", "NHibernate.", "OpenTelemetry.",
}

// phpOthers lists the namespaces of PHP frameworks and libraries.
var phpOthers = []string{
	`Symfony\`, `Illuminate\`, `Laravel\`, `Doctrine\`, `PhpAmqpLib\`, `VladimirYuldashev\`, `GuzzleHttp\`, `Monolog\`,
	`Psr\`, `Composer\`, `Bunny\`, `League\`, `Twig\`, "PDO", "mysqli", "ReflectionMethod", "call_user_func", "Amp\\",
	"React\\", "Revolt\\",
}

// rustOthers lists the crates of the standard library, of runtimes and of clients.
var rustOthers = []string{
	"std::", "core::", "alloc::", "backtrace::", "anyhow::", "tokio::", "futures", "lapin::", "amqprs::", "hyper::",
	"tower::", "tracing::", "rust_begin_unwind", "__rust", "async_std::",
}

// elixirOthers lists the applications of Erlang/OTP, those of Elixir, and the libraries that
// consumers in these languages use.
var elixirOthers = map[string]bool{
	"elixir": true, "stdlib": true, "kernel": true, "erts": true, "logger": true, "mix": true, "ssl": true,
	"crypto": true, "broadway": true, "broadway_rabbitmq": true, "amqp": true, "amqp_client": true, "gen_stage": true,
	"ecto": true, "ecto_sql": true, "db_connection": true, "postgrex": true, "myxql": true, "jason": true,
	"phoenix": true, "plug": true, "telemetry": true, "oban": true, "tesla": true, "finch": true, "mint": true,
	"req": true,
}

// goStandard contains the first path elements of the packages of Go's standard library.
var goStandard = map[string]bool{
	"runtime": true, "net": true, "reflect": true, "sync": true, "testing": true, "encoding": true, "database": true,
	"context": true, "io": true, "os": true, "bufio": true, "bytes": true, "crypto": true, "errors": true,
	"fmt": true, "html": true, "log": true, "math": true, "mime": true, "path": true, "regexp": true, "sort": true,
	"slices": true, "maps": true, "strconv": true, "strings": true, "syscall": true, "text": true, "time": true,
	"unicode": true, "iter": true, "archive": true, "compress": true, "container": true, "go": true, "hash": true,
	"image": true, "unsafe": true, "plugin": true, "expvar": true, "flag": true, "embed": true,
}

// isForeign reports whether a file belongs to a runtime or an installed package, and not to the
// consumer's own code.
func isForeign(path string) bool {
	path = strings.ReplaceAll(path, `\`, "/")
	dirs := []string{
		"node_modules/", "node:", "/site-packages/", "/dist-packages/", "/lib/python", "<frozen ", "/gems/",
		"/lib/ruby/", "<internal:", "/vendor/", "/pkg/mod/", "/go/src/", "/usr/lib/go", "/rustc/",
	}
	return slices.ContainsFunc(dirs, func(dir string) bool { return strings.Contains(path, dir) }) ||
		strings.HasPrefix(path, "vendor/")
}
