package classify_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/classify"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/failure"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

type table = deadletter.Table

const (
	javaStack = "org.springframework.amqp.rabbit.support.ListenerExecutionFailedException: Listener method 'on' threw exception\n\tat org.springframework.amqp.rabbit.listener.A.b(A.java:1)\n" +
		"Caused by: java.lang.IllegalStateException: stock of 17 is negative\n\tat com.acme.orders.Stock.take(Stock.java:42)\n\tat com.acme.orders.PlaceListener.on(PlaceListener.java:20)\n\t... 12 more\n"
	dotnetFrames = "   at Acme.Orders.Stock.Take(Int32 n) in /src/Stock.cs:line 42\n   at Acme.Orders.PlaceHandler.Handle(Place message) in /src/PlaceHandler.cs:line 12\n   at System.Threading.Tasks.Task.Run()"
	dotnetStack  = "System.InvalidOperationException: stock of 17\n" + dotnetFrames
	phpTrace     = "#0 /app/src/PlaceHandler.php(20): App\\Stock->take()\n#1 {main}"
)

// phpMessage is an envelope as serialize of PHP 8 writes it for Symfony's PhpSerializer.
const phpMessage = "O:36:\"Symfony\\Component\\Messenger\\Envelope\":2:{s:44:\"\x00Symfony\\Component\\Messenger\\Envelope\x00stamps\";a:3:{s:49:\"Symfony\\Component\\Messenger\\Stamp\\RedeliveryStamp\";a:2:{i:0;O:49:\"Symfony\\Component\\Messenger\\Stamp\\RedeliveryStamp\":2:{s:61:\"\x00Symfony\\Component\\Messenger\\Stamp\\RedeliveryStamp\x00retryCount\";i:1;" +
	"s:64:\"\x00Symfony\\Component\\Messenger\\Stamp\\RedeliveryStamp\x00redeliveredAt\";O:17:\"DateTimeImmutable\":3:{s:4:\"date\";s:26:\"2026-11-20 07:11:12.000000\";s:13:\"timezone_type\";i:1;s:8:\"timezone\";s:6:\"+00:00\";}}i:1;O:49:\"Symfony\\Component\\Messenger\\Stamp\\RedeliveryStamp\":2:{s:61:\"\x00Symfony\\Component\\Messenger\\Stamp\\RedeliveryStamp\x00retryCount\";i:3;" +
	"s:64:\"\x00Symfony\\Component\\Messenger\\Stamp\\RedeliveryStamp\x00redeliveredAt\";O:17:\"DateTimeImmutable\":3:{s:4:\"date\";s:26:\"2026-11-20 07:11:12.000000\";s:13:\"timezone_type\";i:1;s:8:\"timezone\";s:6:\"+00:00\";}}}s:51:\"Symfony\\Component\\Messenger\\Stamp\\ErrorDetailsStamp\";a:1:{i:0;O:51:\"Symfony\\Component\\Messenger\\Stamp\\ErrorDetailsStamp\":4:{s:67:\"\x00Symfony\\Component\\Messenger\\Stamp\\ErrorDetailsStamp\x00exceptionClass\";s:14:\"App\\OutOfStock\";" +
	"s:66:\"\x00Symfony\\Component\\Messenger\\Stamp\\ErrorDetailsStamp\x00exceptionCode\";i:0;" +
	"s:69:\"\x00Symfony\\Component\\Messenger\\Stamp\\ErrorDetailsStamp\x00exceptionMessage\";s:11:\"stock of 17\";" +
	"s:69:\"\x00Symfony\\Component\\Messenger\\Stamp\\ErrorDetailsStamp\x00flattenException\";O:57:\"Symfony\\Component\\ErrorHandler\\Exception\\FlattenException\":13:{s:66:\"\x00Symfony\\Component\\ErrorHandler\\Exception\\FlattenException\x00message\";s:11:\"stock of 17\";" +
	"s:63:\"\x00Symfony\\Component\\ErrorHandler\\Exception\\FlattenException\x00code\";i:0;" +
	"s:67:\"\x00Symfony\\Component\\ErrorHandler\\Exception\\FlattenException\x00previous\";N;" +
	"s:64:\"\x00Symfony\\Component\\ErrorHandler\\Exception\\FlattenException\x00trace\";a:0:{}s:72:\"\x00Symfony\\Component\\ErrorHandler\\Exception\\FlattenException\x00traceAsString\";s:61:\"#0 /app/src/PlaceHandler.php(20): App\\Stock->take()\n#1 {main}\";" +
	"s:64:\"\x00Symfony\\Component\\ErrorHandler\\Exception\\FlattenException\x00class\";s:14:\"App\\OutOfStock\";" +
	"s:69:\"\x00Symfony\\Component\\ErrorHandler\\Exception\\FlattenException\x00statusCode\";i:500;" +
	"s:69:\"\x00Symfony\\Component\\ErrorHandler\\Exception\\FlattenException\x00statusText\";s:1:\"x\";" +
	"s:66:\"\x00Symfony\\Component\\ErrorHandler\\Exception\\FlattenException\x00headers\";a:0:{}s:63:\"\x00Symfony\\Component\\ErrorHandler\\Exception\\FlattenException\x00file\";s:6:\"/a.php\";" +
	"s:63:\"\x00Symfony\\Component\\ErrorHandler\\Exception\\FlattenException\x00line\";i:3;" +
	"s:67:\"\x00Symfony\\Component\\ErrorHandler\\Exception\\FlattenException\x00asString\";N;s:21:\"\x00*\x00dataRepresentation\";N;}}}s:61:\"Symfony\\Component\\Messenger\\Stamp\\SentToFailureTransportStamp\";a:1:{i:0;O:61:\"Symfony\\Component\\Messenger\\Stamp\\SentToFailureTransportStamp\":1:{s:83:\"\x00Symfony\\Component\\Messenger\\Stamp\\SentToFailureTransportStamp\x00originalReceiverName\";s:5:\"async\";}}}s:45:\"\x00Symfony\\Component\\Messenger\\Envelope\x00message\";O:17:\"App\\Message\\Place\":1:{s:2:\"at\";O:17:\"DateTimeImmutable\":1:{s:4:\"date\";s:26:\"2001-01-01 00:00:00.000000\";}}}"

// phpEscaped does what addslashes of PHP does.
func phpEscaped(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\x00", `\0`).Replace(text)
}

// deliveredLetter returns a letter from an error queue, as a framework publishes it to that queue.
func deliveredLetter(inbox string, p deadletter.Properties, body string) deadletter.Letter {
	return deadletter.Letter{
		Row: deadletter.Row{
			ID:     deadletter.NewID(1, 1),
			State:  deadletter.StateReceived,
			Broker: "main",
			VHost:  "/",
		},
		Inbox:      inbox,
		ArrivedBy:  deadletter.Route{RoutingKey: inbox},
		Properties: p,
		Arrived:    p,
		Body:       []byte(body),
	}
}

// frameworks contains deliveries for every framework that dlo knows. Names, types and formats come
// from the source code of the frameworks.
var frameworks = []struct {
	name   string
	letter deadletter.Letter
}{
	{
		name: "Spring AMQP",
		letter: deliveredLetter("orders.parked", deadletter.Properties{ContentType: "application/json", Headers: table{
			"x-exception-message": "stock of 17 is negative", "x-exception-stacktrace": javaStack,
			"x-original-exchange": "shop", "x-original-routingKey": "order.placed",
			"__TypeId__": "com.acme.orders.Place", "retry-count": int64(3),
		}}, `{"id":17}`),
	},
	{
		name: "Spring AMQP, published to the queue itself, without a stack",
		letter: deliveredLetter("orders.parked", deadletter.Properties{
			Headers: table{"x-exception-message": "boom", "x-original-exchange": "", "x-original-routingKey": "sms"},
		}, ""),
	},
	{
		name: "MassTransit",
		letter: deliveredLetter("sms_error", deadletter.Properties{
			ContentType: "application/vnd.masstransit+json",
			Headers: table{
				"MT-Reason": "fault", "MT-Fault-ExceptionType": "System.InvalidOperationException",
				"MT-Fault-Message": "stock of 17", "MT-Fault-StackTrace": dotnetFrames,
				"MT-Fault-Timestamp":    "2026-11-20T07:11:12.1234567Z",
				"MT-Fault-InputAddress": "rabbitmq://localhost/shop/sms?durable=true",
				"MT-Fault-ConsumerType": "Acme.Orders.PlaceConsumer", "MT-Fault-MessageType": "Acme.Orders.Place",
				"MT-Fault-RetryCount": int32(3),
				"MT-Host-ProcessName": "orders", "MT-Host-AssemblyVersion": "1.4.2",
			},
		}, `{"messageId":"1","messageType":["urn:message:Acme.Orders:Place"],"message":{"id":17}}`),
	},
	{
		name: "MassTransit, skipped",
		letter: deliveredLetter("sms_skipped", deadletter.Properties{
			ContentType: "application/vnd.masstransit+json",
			Headers:     table{"MT-Reason": "dead-letter"},
		}, `{"messageType":["urn:message:Acme.Orders:Place"],"message":{"id":17}}`),
	},
	{
		name: "NServiceBus",
		letter: deliveredLetter("error", deadletter.Properties{
			ContentType: "application/json",
			Type:        "Acme.Orders.Place",
			Headers: table{
				"NServiceBus.FailedQ":                     "sms@WEB-1",
				"NServiceBus.ExceptionInfo.ExceptionType": "System.InvalidOperationException",
				"NServiceBus.ExceptionInfo.Message":       "stock of 17",
				"NServiceBus.ExceptionInfo.StackTrace":    dotnetStack,
				"NServiceBus.TimeOfFailure":               "2026-11-20 07:11:12:123456 Z",
				"NServiceBus.EnclosedMessageTypes":        "Acme.Orders.Place, Acme.Contracts, Version=1.0.0.0, Culture=neutral, PublicKeyToken=null;Acme.Orders.IPlace, Acme.Contracts",
				"NServiceBus.Retries":                     "2", "NServiceBus.ProcessingEndpoint": "Orders",
			},
		}, `{"id":17}`),
	},
	{
		name: "EasyNetQ",
		letter: deliveredLetter("EasyNetQ_Default_Error_Queue", deadletter.Properties{
			ContentType: "application/json", Type: "EasyNetQ.SystemMessages.Error, EasyNetQ",
		},
			`{"RoutingKey":"order.placed","Exchange":"shop","Queue":"sms","Exception":"System.AggregateException: One or more errors occurred. (stock of 17)\n ---> System.InvalidOperationException: stock of 17\n   at Acme.Orders.Stock.Take(Int32 n)","Message":"{\"id\":17}","DateTime":"2026-11-20T07:11:12.5Z","BasicProperties":{"ContentType":"application/json","Type":"Acme.Orders.Place, Acme.Contracts"}}`),
	},
	{
		name: "Rebus, each attempt of its own",
		letter: deliveredLetter("error", deadletter.Properties{Headers: table{
			"rbs2-error-details": "2 unhandled exceptions: 11/20/2026 10:11:12 +00:00: " + dotnetStack +
				"\n11/20/2026 10:11:13 +00:00: " + dotnetStack,
			"rbs2-source-queue": "sms", "rbs2-msg-type": "Acme.Orders.Place, Acme.Contracts",
			"rbs2-delivery-count": "5", "rbs2-content-type": "application/json;charset=utf-8",
		}}, `{"id":17}`),
	},
	{
		name: "Rebus 8",
		letter: deliveredLetter("error", deadletter.Properties{Headers: table{
			"rbs2-error-details": "1 unhandled exceptions (stock of 17): System.AggregateException: 1 unhandled exceptions (stock of 17)\r\n ---> " + dotnetStack + "\r\n   --- End of inner exception stack trace ---",
			"rbs2-source-queue":  "sms", "rbs2-msg-type": "Acme.Orders.Place, Acme.Contracts",
		}}, `{"id":17}`),
	},
	{
		name: "Wolverine",
		letter: deliveredLetter("wolverine-dead-letter-queue", deadletter.Properties{
			Type:        "Acme.Orders.Place",
			ContentType: "application/json",
			Headers: table{
				"exception-type": "System.InvalidOperationException", "exception-message": "stock of 17",
				"exception-stack": dotnetFrames, "failed-at": "1795158672123",
				"original-destination": "rabbitmq://queue/sms", "attempts": "3",
				"message-type": "Acme.Orders.Place",
			},
		}, `{"id":17}`),
	},
	{
		name: "Celery",
		letter: deliveredLetter("dlq", deadletter.Properties{
			ContentType:     "application/json",
			ContentEncoding: "utf-8",
			CorrelationID:   "6c2a",
			Headers: table{
				"lang":       "py",
				"task":       "shop.tasks.place",
				"id":         "6c2a",
				"retries":    int32(2),
				"origin":     "gen4242@web-1",
				"argsrepr":   "(17,)",
				"kwargsrepr": "{}",
				"eta":        nil,
				"timelimit":  []any{nil, nil},
			},
		}, `[[17], {}, {"callbacks": null}]`),
	},
	{
		name: "Symfony Messenger",
		letter: deliveredLetter("failed", deadletter.Properties{ContentType: "application/json", Headers: table{
			"type": `App\Message\Place`, "Content-Type": "application/json",
			`X-Message-Stamp-Symfony\Component\Messenger\Stamp\BusNameStamp`:                `[{"busName":"messenger.bus.default"}]`,
			`X-Message-Stamp-Symfony\Component\Messenger\Stamp\ErrorDetailsStamp`:           `[{"exceptionClass":"Old","exceptionCode":0,"exceptionMessage":"old"},{"exceptionClass":"App\\OutOfStock","exceptionCode":0,"exceptionMessage":"stock of 17","flattenException":{"message":"stock of 17","code":0,"class":"App\\OutOfStock","trace_as_string":"#0 /app/src/PlaceHandler.php(20): App\\Stock->take()\n#1 {main}","previous":null}}]`,
			`X-Message-Stamp-Symfony\Component\Messenger\Stamp\RedeliveryStamp`:             `[{"retryCount":1,"redeliveredAt":"2026-11-20T06:00:00+00:00"},{"retryCount":3,"redeliveredAt":"2026-11-20T07:11:12+00:00"}]`,
			`X-Message-Stamp-Symfony\Component\Messenger\Stamp\SentToFailureTransportStamp`: `[{"originalReceiverName":"async"}]`,
		}}, `{"id":17}`),
	},
	{
		name: "Laravel",
		letter: func() deadletter.Letter {
			l := deliveredLetter("failed-jobs", deadletter.Properties{
				ContentType: "application/json",
				Headers:     table{"laravel": table{"attempts": int32(2)}},
			},
				`{"displayName":"App\\Jobs\\Place","job":"Illuminate\\Queue\\CallQueuedHandler@call","data":{"commandName":"App\\Jobs\\Place","command":"O:14:"}}`)
			l.ArrivedBy.RoutingKey = "sms.failed"
			return l
		}(),
	},
	{
		name: "Kicks",
		letter: func() deadletter.Letter {
			l := deliveredLetter("sms-error", deadletter.Properties{Headers: table{
				"retry_info": `{"error":"stock of 17","num_attempts":6,"failed_at":"2026-11-20T07:11:12Z","properties":{"headers":{"x-tenant":"7"}},"error_class":"Shop::OutOfStock","error_message":"stock of 17","backtrace":["/app/workers/stock.rb:42:in 'Stock#take'","/app/workers/order.rb:7:in 'Order#work'"]}`,
			}}, `{"id":17}`)
			l.ArrivedBy = deadletter.Route{Exchange: "sms-error", RoutingKey: "order.placed"}
			return l
		}(),
	},
	{
		name: "Sneakers, once it had failed before",
		letter: func() deadletter.Letter {
			l := deliveredLetter("sms-error", deadletter.Properties{
				Headers: table{
					"retry_info": `[{"error":"reject","num_attempts":6,"failed_at":"2026-11-20T08:11:12+01:00","properties":{}},["error","old"],["num_attempts",6]]`,
				},
			}, `{"id":17}`)
			l.ArrivedBy.RoutingKey = "sms"
			return l
		}(),
	},
	{
		name: "Watermill",
		letter: deliveredLetter("poison", deadletter.Properties{
			Headers: table{
				"_watermill_message_uuid": "6c2a", "reason_poisoned": "take: stock of 17", "topic_poisoned": "sms",
				"handler_poisoned": "place", "name": "Place", "subscriber_poisoned": "amqp.Subscriber",
			},
		}, `{"id":17}`),
	},
	{
		name: "Nameko",
		letter: deliveredLetter("dlq", deadletter.Properties{
			ContentType: "application/json",
			Headers:     table{"nameko.call_id_stack": []any{"standalone.call.0", "orders.place.6c2a"}},
		}, `{"args":[17],"kwargs":{}}`),
	},
	{
		name: "a shovel",
		letter: deliveredLetter("dlo.letters", deadletter.Properties{
			Headers: table{
				"x-shovelled": []any{
					table{"src-queue": "sms", "src-uri": "amqp://", "dest-queue": "dlo.letters"},
				},
				"x-shovelled-timestamp": int64(1795158672),
			},
		}, `{"id":17}`),
	},
	{
		name: "a shovel out of an error queue of MassTransit",
		letter: deliveredLetter("dlo.letters", deadletter.Properties{Headers: table{
			"x-shovelled":            []any{table{"src-queue": "sms_error"}},
			"MT-Reason":              "fault",
			"MT-Fault-Message":       []byte("boom"),
			"MT-Fault-ExceptionType": int32(7),
		}}, ""),
	},
	{
		name: "CloudEvents, binary",
		letter: deliveredLetter("dlq", deadletter.Properties{
			ContentType: "application/json",
			Headers: table{
				"cloudEvents_specversion": "1.0", "cloudEvents_type": "com.acme.placed", "cloudEvents_source": "/shop",
				"cloudEvents_id": "1",
			},
		}, `{"id":17}`),
	},
	{
		name: "CloudEvents of JMS, with an error beside",
		letter: deliveredLetter("dlq", deadletter.Properties{
			ContentType: "application/json",
			Headers:     table{"cloudEvents:type": "com.acme.placed", "x-error": "boom"},
		}, `{"id":17}`),
	},
	{
		name: "CloudEvents, structured",
		letter: deliveredLetter("dlq", deadletter.Properties{
			ContentType: "application/cloudevents+json",
		}, `{"specversion":"1.0","id":"1","source":"/shop","type":"com.acme.placed","data":{"id":17}}`),
	},
	{
		name: "Rascal", // made by hand
		letter: deliveredLetter("dead_letters", deadletter.Properties{
			ContentType: "application/json",
			Headers: table{"rascal": table{
				"originalQueue": "sms", "originalExchange": "shop", "originalRoutingKey": "order.placed", "originalVhost": "/",
				"redeliveries": int64(0), "error": table{"message": "stock of 17", "code": "E_STOCK"},
				"recovery": table{"sms": table{"republished": int64(3), "immediateNack": true}},
			}},
		}, `{"id":17}`),
	},
	{
		name: "Knative",
		letter: deliveredLetter("dlq", deadletter.Properties{
			ContentType: "application/json",
			Headers: table{
				"cloudEvents:specversion": "1.0", "cloudEvents:type": "com.acme.placed", "cloudEvents:id": "1",
				"cloudEvents:knativeerrordest": "http://stock.shop.svc/", "cloudEvents:knativeerrorcode": "503",
				"cloudEvents:knativeerrordata": "c3RvY2sgb2YgMTc=",
			},
		}, `{"id":17}`),
	},
	{
		name:   "Symfony Messenger, PhpSerializer",
		letter: deliveredLetter("failed", deadletter.Properties{}, phpEscaped(phpMessage)),
	},
	{
		name:   "Symfony Messenger, PhpSerializer, not escaped",
		letter: deliveredLetter("failed", deadletter.Properties{}, phpMessage),
	},
	{
		name: "Symfony Messenger, PhpSerializer, in base64 because of a byte that is not UTF-8",
		letter: deliveredLetter("failed", deadletter.Properties{}, base64.StdEncoding.EncodeToString(
			[]byte(phpEscaped(strings.ReplaceAll(phpMessage, "stock", "st\xe4ck"))),
		)),
	},
	{
		name: "Dramatiq", // made by hand: after its last retry, from NAME.XQ
		letter: deliveredLetter("sms.XQ", deadletter.Properties{},
			`{"queue_name":"sms.DQ","actor_name":"place","args":[17],"kwargs":{},"options":{"retries":20,"traceback":"Traceback (most recent call last):\n`+
				strings.Repeat(`  File \"/usr/lib/python3/dist-packages/dramatiq/worker.py\", line 1, in process_message\n    res = actor(*message.args)\n`, 60)+
				`  File \"/srv/jobs.py\", line 12, in place\n    raise OutOfStock(n)\njobs.OutOfStock: stock of 17\n","eta":1795158672000,"redis_message_id":"r-1"},"message_id":"6c2a","message_timestamp":1795158672000}`),
	},
	{
		name: "Dramatiq, expired in NAME.XQ", // made by hand
		letter: deliveredLetter("dlo.letters", deadletter.Properties{Headers: table{"x-death": []any{
			table{
				"queue": "sms.XQ", "exchange": "", "reason": "expired", "routing-keys": []any{"sms.XQ"}, "count": int64(1),
				"time": time.Unix(1795158672, 0),
			},
			table{
				"queue": "sms", "exchange": "", "reason": "rejected", "routing-keys": []any{"sms"}, "count": int64(1),
				"time": time.Unix(1795000000, 0),
			},
		}}}, `{"queue_name":"sms","actor_name":"place","args":[17],"kwargs":{},"options":{},"message_id":"6c2a","message_timestamp":1}`),
	},
	{
		name:   "NestJS",
		letter: deliveredLetter("dlq", deadletter.Properties{}, `{"pattern":"order.placed","data":{"id":17}}`),
	},
	{
		name:   "NestJS, a request with a pattern that is an object",
		letter: deliveredLetter("dlq", deadletter.Properties{}, `{"pattern": {"cmd": "place"}, "data": 17, "id": "6c2a"}`),
	},
	{
		name:   "NestJS, a pattern with an id",
		letter: deliveredLetter("dlq", deadletter.Properties{}, `{"pattern":"order.4711.placed","data":{"id":17}}`),
	},
	{
		name: "NestJS, an object with ids",
		letter: deliveredLetter(
			"dlq", deadletter.Properties{}, `{"pattern":{"cmd":"place-4711","id":17},"data":{"id":17}}`,
		),
	},
	{
		name:   "no packet of NestJS",
		letter: deliveredLetter("dlq", deadletter.Properties{}, `{"pattern":"order.placed","data":{"id":17},"more":1}`),
	},
	{
		name: "CloudEvents as text, as Dapr declares it",
		letter: deliveredLetter("dlq", deadletter.Properties{ContentType: "text/plain"},
			`{"specversion":"1.0","id":"1","source":"shop","type":"com.acme.placed","datacontenttype":"application/json","data":{"id":17},"topic":"orders","pubsubname":"bus"}`),
	},
	{
		name: "CloudEvents without data",
		letter: deliveredLetter("dlq", deadletter.Properties{},
			`{"specversion":"1.0","id":"1","source":"shop","type":"com.acme.placed"}`),
	},
	{
		name: "plain headers",
		letter: deliveredLetter("dlq", deadletter.Properties{
			Headers: table{"exception-type": "TimeoutError", "exception-message": "after 3 s"},
		}, `{"id":17}`),
	},
}

// TestWhatFrameworksSay compares what dlo reads from each delivery with testdata/frameworks.golden:
// the failure, from headers and body together, and what the verdict has of it.
func TestWhatFrameworksSay(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	list := func(of any) {
		v := reflect.ValueOf(of)
		for i := range v.NumField() {
			if f := v.Field(i); !f.IsZero() {
				fmt.Fprintf(&all, "    %s: %q\n", v.Type().Field(i).Name, fmt.Sprintf("%+v", f))
			}
		}
	}
	for _, c := range frameworks {
		d := &payload.Decoder{}
		doc := d.Decode(c.letter.Body, d.HintsOf(&c.letter), nil)
		said := failure.Join(failure.Read(c.letter.Arrived, c.letter.Inbox, c.letter.ArrivedBy, deadletter.FailureHeaders{}, nil), doc.Failure)
		all.WriteString(c.name + "\n")
		list(said)
		v := verdicts(t, options(), c.letter)[0]
		all.WriteString("  verdict\n")
		list(deadletter.Classified{
			To: v.To, Origin: v.Origin, Reason: v.Reason, DiedAt: v.DiedAt, Error: v.Error, Type: v.Type,
			GroupTitle: v.GroupTitle,
		})
	}
	testenv.GoldenText(t, "frameworks.golden", all.String())
}

// TestErrorsOfEasyNetQAreUnwrapped checks that dlo sends back the message inside an EasyNetQ error.
// The error of the letter must always be the one in the envelope, even if the letter came back in
// another envelope.
func TestErrorsOfEasyNetQAreUnwrapped(t *testing.T) {
	t.Parallel()
	envelope := func(exception, message string) string {
		return `{"RoutingKey":"order.placed","Exchange":"shop","Queue":"sms","Exception":"` + exception +
			`","Message":` + message + `,"DateTime":"2026-11-20T07:11:12Z","BasicProperties":{"ContentType":"application/json","Type":"Acme.OrderMsg, Acme","CorrelationId":"c-1","Headers":{"x-tenant":"7"}}}`
	}
	outer := deadletter.Properties{ContentType: "application/json", Type: "EasyNetQ.SystemMessages.Error, EasyNetQ"}
	l := deliveredLetter("EasyNetQ_Default_Error_Queue", outer, envelope("System.X: boom", `"{\"id\":17}"`))
	v := verdicts(t, options(), l)[0]
	u := v.Unwrapped
	if u == nil || v.To != deadletter.ClassifiedRetry || v.Type != "Acme.OrderMsg" || v.Error != "System.X: boom" ||
		v.Origin.Queue != "sms" || v.Reason != "rejected" {
		t.Fatalf("%+v", v)
	}
	if p := u.Properties; string(u.Body) != `{"id":17}` || p.Type != "Acme.OrderMsg, Acme" ||
		p.CorrelationID != "c-1" || p.Headers["x-tenant"] != "7" || u.Number != 1 {
		t.Errorf("%s with %+v", u.Body, p)
	}
	back := l
	back.Revised, back.Revision, back.Queue, back.Attempts = u, 1, "sms", 1
	back.ArrivedBody = []byte(envelope("System.Y: again", `"{\"id\":17}"`))
	if v := verdicts(
		t, options(), back,
	)[0]; v.Unwrapped != nil || v.Error != "System.Y: again" || v.Reason != "rejected" || v.Type != "Acme.OrderMsg" {
		t.Errorf("came back: %+v", v)
	}
	lost := deliveredLetter("EasyNetQ_Default_Error_Queue", outer, envelope("System.X: boom", `"a\ufffdb"`))
	if v := verdicts(t, options(), lost)[0]; v.To != deadletter.ClassifiedHold || v.Unwrapped != nil ||
		!strings.Contains(v.Why, "has lost bytes") || v.Unpublishable == "" {
		t.Errorf("cannot be unwrapped: %+v", v)
	}
	lost.Unguarded = true
	if v := verdicts(t, options(), lost)[0]; v.To != deadletter.ClassifiedDead || v.Unpublishable == "" {
		t.Errorf("released: %+v", v)
	}
}

// TestTheTypeThatAFrameworkNames checks that lists, rules and queries use the type that a framework
// names. The keys of groups must be the same as in earlier versions, which did not use this type.
func TestTheTypeThatAFrameworkNames(t *testing.T) {
	t.Parallel()
	died := func(queue string, headers table) deadletter.Letter {
		headers["x-death"] = []any{
			table{
				"queue":        queue,
				"exchange":     "",
				"reason":       "rejected",
				"routing-keys": []any{queue},
				"count":        int64(1),
			},
		}
		return deliveredLetter("dlo.letters", deadletter.Properties{
			ContentType: "application/json", Headers: headers,
		}, `[[17], {}, {}]`)
	}
	task := func() table { return table{"task": "shop.charge", "lang": "py", "id": "6c2a"} }
	failed := task()
	failed["x-error"] = "boom"
	o := options()
	set := *o.Rules.Set()
	set.Rules = []rules.Rule{
		{
			Name:     "charges",
			Match:    rules.Match{Type: rules.Patterns{"shop.*"}, NoSchema: true},
			Severity: deadletter.SeverityPage,
		},
	}
	o.Rules = rules.NewBook(&set)
	got := verdicts(t, o, died("sms", task()), died("sms", failed))
	for i, want := range []struct {
		title string
		key   [32]byte
	}{
		{"shop.charge rejected", deadletter.Hash("main", "/", "sms", "rejected", "", "form", "sms", "shop.charge")},
		{"boom", deadletter.Hash("main", "/", "sms", "rejected", "", "error", "", "boom")},
	} {
		if v := got[i]; v.Type != "shop.charge" || v.GroupTitle != want.title || v.GroupKey != want.key ||
			v.Rule != "charges" {
			t.Errorf("%q, rule %s, group %q %x", v.Type, v.Rule, v.GroupTitle, v.GroupKey)
		}
	}
	crashed := died("sms", task())
	crashed.Crashes = deadletter.MaxCrashes
	annotated := died("sms", task())
	annotated.Annotation = &deadletter.Failure{By: "annotation", Message: "no stock"}
	hostile := died("sms", table{"task": "a\u202eb\n", "lang": "py"})
	got = verdicts(t, o, crashed, annotated, hostile)
	if got[0].Type != "shop.charge" || got[1].Type != "shop.charge" ||
		strings.ContainsAny(got[2].Type+got[2].GroupTitle, "\u202e\n") {
		t.Errorf("%q, %q, %q", got[0].Type, got[1].Type, got[2].Type)
	}
}

// TestEveryFrameworkOfTheManualHasADelivery checks that every framework in the manual has a test
// delivery. If somebody adds a framework, the stored letters must be grouped again. The test
// reminds people of this.
func TestEveryFrameworkOfTheManualHasADelivery(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile("../../docs/grouping.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(manual), "\n| framework |")
	rows, _, _ := strings.Cut(rest, "\n\n")
	there := map[string]bool{}
	for _, c := range frameworks {
		said := failure.Read(c.letter.Arrived, c.letter.Inbox, c.letter.ArrivedBy, deadletter.FailureHeaders{}, nil)
		there[c.name], there[strings.Replace(said.By, failure.Plain, "any", 1)] = true, true
	}
	list := regexp.MustCompile(`(?m)^\| ([^(|]+) `).FindAllStringSubmatch(rows, -1)
	for _, row := range list {
		for name := range strings.SplitSeq(row[1], ", ") {
			if !there[name] {
				t.Errorf("%s has no delivery in frameworks", name)
			}
		}
	}
	if got := fmt.Sprintf(
		"%d frameworks, grouping %d", len(list), classify.GroupVersion,
	); got != "19 frameworks, grouping 5" {
		t.Errorf(
			"%s: whoever adds a framework gives GroupVersion the next number, so that stored letters are grouped again, and writes both here",
			got,
		)
	}
}

// TestAMaskedHeaderOfAFrameworkShowsNowhere checks that the value of a masked header is not shown,
// for example in the failure or in the title of the group. If another header contains the same
// text, the text must not be shown from there either.
func TestAMaskedHeaderOfAFrameworkShowsNowhere(t *testing.T) {
	t.Parallel()
	const canary = "Canary of Anna"
	masked := 0
	for _, c := range frameworks {
		for name, value := range c.letter.Arrived.Headers {
			for _, secret := range []string{"stock of 17", "System.InvalidOperationException", "boom", "TimeoutError"} {
				text, _ := value.(string)
				if !strings.Contains(text, secret) {
					continue
				}
				headers := table{}
				for k, v := range c.letter.Arrived.Headers {
					// a stack repeats a message or a type; if only the stack is masked, the
					// repeated text may be shown
					if s, ok := v.(string); ok && (k == name || strings.HasPrefix(text, secret) && len(text) < 40) {
						v = strings.ReplaceAll(s, secret, canary)
					}
					headers[k] = v
				}
				l := c.letter
				l.Arrived.Headers = headers
				masks := payload.Masks{Headers: []string{strings.ToLower(name)}}
				o := options()
				o.Mask = masks.Header
				v := verdicts(t, o, l)[0]
				if shown := fmt.Sprintf(
					"%+v %q %q %q", failure.Read(l.Arrived, l.Inbox, l.ArrivedBy, deadletter.FailureHeaders{}, masks.Header), v.Error, v.GroupTitle,
					v.Why,
				); strings.Contains(shown, canary) {
					t.Errorf("%s, %s: %s", c.name, name, shown)
				}
				plain := verdicts(t, options(), c.letter)[0]
				if masked++; v.GroupKey == plain.GroupKey {
					t.Errorf("%s, %s: what is masked still tells groups apart", c.name, name)
				}
			}
		}
	}
	if masked < 20 {
		t.Errorf("%d headers", masked)
	}
}

func TestPatternsMaskWhatFrameworksSay(t *testing.T) {
	t.Parallel()
	masks := payload.Masks{Patterns: []*regexp.Regexp{regexp.MustCompile(`17`)}}
	o := options()
	o.Mask = masks.Header
	o.Decoder = func() *payload.Decoder { return &payload.Decoder{Mask: masks.Body()} }
	for _, c := range frameworks {
		v := verdicts(t, o, c.letter)[0]
		if f := failure.Read(
			c.letter.Arrived, c.letter.Inbox, c.letter.ArrivedBy, deadletter.FailureHeaders{}, masks.Header,
		); strings.Contains(f.Type+f.Message+f.Stack+v.Error+v.GroupTitle, "17") {
			t.Errorf("%s: %+v, %q", c.name, f, v.Error)
		}
	}
}
