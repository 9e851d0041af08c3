// A client of NestJS that publishes two events and one request to the queue in QUEUE.
require('reflect-metadata')
const { ClientProxyFactory, Transport } = require('@nestjs/microservices')
const { lastValueFrom, timeout } = require('rxjs')

async function main () {
  const client = ClientProxyFactory.create({
    transport: Transport.RMQ,
    options: { urls: [process.env.AMQP_URL], queue: process.env.QUEUE, noAssert: true, persistent: true }
  })
  await client.connect()
  await lastValueFrom(client.emit('order.placed', { id: 7 }))
  await lastValueFrom(client.emit('order.paid', { id: 7 }))
  await lastValueFrom(client.send({ cmd: 'place' }, { id: 7 }).pipe(timeout(1000))).catch(() => {})
  await client.close()
}

main().then(() => process.exit(0), error => { console.error(error); process.exit(1) })
