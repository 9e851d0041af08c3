package store

// ofdSetLock is F_OFD_SETLK of bsd/sys/fcntl.h of XNU.
const ofdSetLock = 90
