package store

// ofdSetLock is F_OFD_SETLK in fcntl(2), since Linux 3.15.
const ofdSetLock = 37
