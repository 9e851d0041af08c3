# An AMQP 1.0 client. It sends two values to a queue and settles each of them with another
# outcome. It prints every error.
import sys

from proton import Condition, Delivery, Message, symbol
from proton.handlers import MessagingHandler
from proton.reactor import Container


class Worker(MessagingHandler):
    def __init__(self, url, vhost, queue):
        super().__init__(auto_accept=False, auto_settle=False)
        self.url, self.vhost, self.address = url, vhost, "/queues/" + queue
        self.values = ["modified", "rejected"]

    def on_start(self, event):
        connection = event.container.connect(self.url, virtual_host="vhost:" + self.vhost, sasl_enabled=True, reconnect=False)
        event.container.create_receiver(connection, self.address)
        event.container.create_sender(connection, self.address)

    def on_sendable(self, event):
        while self.values:
            event.sender.send(Message(body=self.values.pop(0)))

    def on_message(self, event):
        delivery, body = event.delivery, event.message.body
        if body == "modified":
            delivery.local.undeliverable = True
            delivery.local.failed = True
            delivery.local.annotations = {
                symbol("x-opt-error-type"): "Acme.Stock",
                symbol("x-opt-error-message"): "stock of 17",
            }
            delivery.update(Delivery.MODIFIED)
        else:
            delivery.local.condition = Condition("acme:stock", "stock of 18")
            delivery.update(Delivery.REJECTED)
        delivery.settle()

    def on_transport_error(self, event):
        print("error", event.transport.condition, flush=True)

    def on_connection_error(self, event):
        print("error", event.connection.remote_condition, flush=True)

    def on_link_error(self, event):
        print("error", event.link.remote_condition, flush=True)


Container(Worker(sys.argv[1], sys.argv[2], sys.argv[3])).run()
