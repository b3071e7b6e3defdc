/**
 * @file nmad.h
 * @brief NewMadeleine: messages over every network of a node at once.
 *
 * Programs are ranks of a job (started by `mpiexec -n 4 ./program`, or alone), join it with nmad_open(), and
 * exchange messages that are matched by sender, context and tag. A message may be sent at once, in the
 * background, from several places of memory, or piece by piece. What each network carries is decided when
 * the network is idle, not when a function is called: messages that wait leave together.
 *
 * @section errors Errors
 * Functions return a code: ::NMAD_OK (0); a positive one when nothing is wrong but nothing has happened either
 * (::NMAD_PENDING, ::NMAD_BUSY); a negative one when the call failed. nmad_strerror() says what a code means,
 * nmad_last_error() what went wrong the last time in the calling thread, with cause and remedy. No function ends
 * the process except nmad_abort(). What concerns the whole job, a network that is lost for example, is also
 * written to standard error.
 *
 * @section threads Threads
 * Every function may be called by any number of threads at once, on the same session too; any thread may wait
 * for any request. Exception: while nmad_close() runs, no other call on that session may, and none may
 * be waiting. A process that forks must not use the session in the child.
 *
 * @section memory Memory
 * Memory that is given to a request belongs to the library until the request has ended: data to be sent may
 * be read but not changed, a buffer to be filled must not be touched. Lists (struct iovec, options, requests) are
 * only read during the call. A pointer may be NULL where its length is zero, or where it says so here;
 * otherwise NULL is an error (::NMAD_ERR_ARGUMENT), never a crash.
 *
 * @section units Units
 * Lengths are in bytes, times in nanoseconds, bandwidths in bytes per second. A message has at most 2^63 - 1 bytes.
 */
#ifndef NMAD_H
#define NMAD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h> /* struct iovec */

/** @name Version of this header; nmad_version() tells that of the library. @{ */
#define NMAD_VERSION_MAJOR 0
#define NMAD_VERSION_MINOR 1
#define NMAD_VERSION_PATCH 0
/** @} */

/** Marks what the library exports. */
#if defined(__GNUC__)
#define NMAD_API __attribute__((visibility("default")))
#else
#define NMAD_API
#endif

/** Marks what a plug-in exports. */
#define NMAD_PLUGIN NMAD_API

#ifdef __cplusplus
extern "C" {
#endif

/** What functions return. */
enum nmad_code {
    NMAD_OK = 0,             /**< It is done. */
    NMAD_PENDING = 1,        /**< Not yet: the request runs, no message is there, nothing has moved. */
    NMAD_BUSY = 2,           /**< nmad_arm(): do not sleep, something has happened. */
    NMAD_ERR_ARGUMENT = -1,  /**< An argument makes no sense. */
    NMAD_ERR_SESSION = -2,   /**< No open session. */
    NMAD_ERR_REQUEST = -3,   /**< No such request: it never was, or its end was told already. */
    NMAD_ERR_MESSAGE = -4,   /**< No such message in pieces: it never was begun, or is ended. */
    NMAD_ERR_RANK = -5,      /**< The job has no such rank. */
    NMAD_ERR_CONTEXT = -6,   /**< The context is not below ::NMAD_CONTEXT_LIMIT. */
    NMAD_ERR_SETTING = -7,   /**< A setting is unknown or its value makes no sense. */
    NMAD_ERR_LAUNCH = -8,    /**< The job cannot be joined, or its launcher is gone. */
    NMAD_ERR_RAIL = -9,      /**< A network cannot be used. */
    NMAD_ERR_SYSTEM = -10,   /**< The system refused something. */
    NMAD_ERR_TRUNCATED = -11,/**< The message was longer than the buffer: its beginning is there. */
    NMAD_ERR_PEER = -12,     /**< The other process is gone. */
    NMAD_ERR_CANCELLED = -13,/**< The receive was cancelled. */
    NMAD_ERR_INTERNAL = -14  /**< A bug of the library. Please report what nmad_last_error() says. */
};

/** A session: one process of a job. Made by nmad_open(). */
typedef struct nmad_session nmad_session_t;

/** A message under way. Names are not used again; zero (::NMAD_REQUEST_NULL) is none. */
typedef uint64_t nmad_request_t;

/** A message that is being built piece by piece. */
typedef uint64_t nmad_packing_t;

/** A message that is being taken apart. */
typedef uint64_t nmad_unpacking_t;

/** No request. */
#define NMAD_REQUEST_NULL ((nmad_request_t)0)
/** Receives: from any rank. nmad_set_strategy(): for all ranks. */
#define NMAD_ANY_RANK UINT32_MAX
/** Contexts are below this. */
#define NMAD_CONTEXT_LIMIT UINT32_C(0x80000000)
/** Timeouts: as long as it takes. */
#define NMAD_FOREVER UINT64_MAX

/** Flag of receives: take any tag; the argument `tag` is ignored. */
#define NMAD_ANY_TAG 1u

/** Flag of hints: the send ends when the receiver has matched it, not before. */
#define NMAD_SYNCHRONOUS 1u
/** Flag of hints: the message may overtake others of its sender, receiver and context, and be overtaken. */
#define NMAD_UNORDERED 2u
/** Flag of hints: nmad_hints_t::rail is meant. */
#define NMAD_RAIL 4u
/** Flag of hints: the message depends on the one that was submitted before it to the same rank, as the arguments of a
 * service depend on its number: whatever its priority, no rail gets it earlier. */
#define NMAD_DEPENDS 8u
/** Flag of hints: what matters is that the message arrives soon. It does not wait for company in its packet. */
#define NMAD_LATENCY 16u
/** Flag of hints: what matters is how much is carried in all. The rail with the least latency is left to others. */
#define NMAD_BANDWIDTH 32u

/** What the program knows about a message. All zero (or NULL for the pointer): nothing special. */
typedef struct nmad_hints {
    uint32_t flags;   /**< ::NMAD_SYNCHRONOUS, ::NMAD_UNORDERED, ::NMAD_RAIL, ::NMAD_DEPENDS, and ::NMAD_LATENCY or
                           ::NMAD_BANDWIDTH, or'ed. */
    int32_t priority; /**< -128 to 127; what waits with a higher one leaves first. Usual: 0. */
    uint32_t rail;    /**< With ::NMAD_RAIL: the only rail to carry it, see nmad_rail_info(). A rail that is dead
                           or does not lead to the receiver is ignored. */
    uint32_t strategy; /**< What decides about this message, see nmad_strategy_number(); 0: the strategy of its rank. */
} nmad_hints_t;

/** What is known about a message that has ended or was found. */
typedef struct nmad_message {
    uint32_t rank;     /**< Who sent it; for a send: who gets it. */
    uint32_t context;  /**< Its context. */
    uint64_t tag;      /**< Its tag; for the pieces of a message after the first one: their number, from 1. */
    uint64_t len;      /**< Its length as it was sent. */
    uint64_t received; /**< Bytes of it in the buffer: less than `len` if it was truncated, 0 for nmad_probe(). */
} nmad_message_t;

/** A setting by its key, as in the configuration file (strategy, rails, feed, eager_max, ...: see tune.md). */
typedef struct nmad_option {
    const char *key;   /**< Key. */
    const char *value; /**< Value as text, for example "4096". */
} nmad_option_t;

/** A rail: one network interface in use, and what it has carried since nmad_open(). */
typedef struct nmad_rail_info {
    char name[64];         /**< Kind of network and interface, for example tcp/eth0; cut if longer. */
    char address[192];     /**< Where peers reach it; empty for the rail to oneself; cut if longer. */
    uint64_t bandwidth;    /**< Nominal bandwidth in bytes per second, 0: unknown. */
    uint64_t latency_ns;   /**< Nominal latency in nanoseconds, 0: unknown. */
    uint64_t peers;        /**< Ranks that can be reached over it. */
    uint64_t packets;      /**< Packets sent. */
    uint64_t packet_bytes; /**< Bytes of packets sent, headers included. */
    uint64_t entries;      /**< Messages and control messages in those packets. */
    uint64_t chunks;       /**< Parts of large messages sent. */
    uint64_t chunk_bytes;  /**< Bytes of such parts sent. */
    uint64_t packets_in;   /**< Packets received. */
    uint64_t chunks_in;    /**< Parts of large messages received. */
    uint64_t resent;       /**< Packets and parts sent again since they were lost. */
    uint64_t replayed;     /**< Packets and parts taken over from rails that died. */
} nmad_rail_info_t;

/** @name Version and errors @{ */

/**
 * Version of the library. Versions of one major number (while it is 0: of one minor number) are compatible.
 * @param[out] major, minor, patch  Each may be NULL.
 * @return ::NMAD_OK.
 */
NMAD_API int nmad_version(int *major, int *minor, int *patch);

/**
 * What a code means.
 * @return A text that is never NULL and never changes.
 */
NMAD_API const char *nmad_strerror(int code);

/**
 * The error of the last call of this thread that failed, with cause and remedy.
 * @return A text that belongs to the thread and is valid until its next call that fails; "" if none has.
 */
NMAD_API const char *nmad_last_error(void);

/** @} */
/** @name Session @{ */

/**
 * Joins the job that this process was started in, or makes a job of one, with the settings of the configuration
 * file and of the environment. Waits until all ranks of the job are there (at most NMAD_LAUNCH_TIMEOUT
 * seconds if that variable is set). Works once in a process that a launcher has started.
 * @param[out] session  To be closed with nmad_close().
 * @return ::NMAD_OK, ::NMAD_ERR_LAUNCH, ::NMAD_ERR_SETTING, ::NMAD_ERR_RAIL, ::NMAD_ERR_SYSTEM.
 */
NMAD_API int nmad_open(nmad_session_t **session);

/**
 * nmad_open() with further settings, which win over those of the environment.
 * @param options  `count` settings; may be NULL if `count` is 0.
 */
NMAD_API int nmad_open_with(const nmad_option_t *options, size_t count, nmad_session_t **session);

/**
 * Leaves the job: submitted messages leave (waits for at most 5 s), and the other ranks receive notice. Requests
 * that have not ended are forgotten; their memory is the program's again. The session is gone even if the call
 * fails. If a process ends without this call, the launcher takes it for crashed and ends the job.
 * @return ::NMAD_OK, ::NMAD_ERR_LAUNCH if the launcher is gone, ::NMAD_ERR_SETTING if a trace cannot be written.
 */
NMAD_API int nmad_close(nmad_session_t *session);

/**
 * Ends the whole job with this exit code. Returns only if the session is not open.
 * @param why  For the user; may be NULL.
 */
NMAD_API int nmad_abort(nmad_session_t *session, int code, const char *why);

/** Our own rank: 0 to nmad_size() - 1. */
NMAD_API int nmad_rank(nmad_session_t *session, uint32_t *rank);

/** Ranks of the job. */
NMAD_API int nmad_size(nmad_session_t *session, uint32_t *size);

/** @} */
/** @name Sending and receiving
 * Messages of one sender, receiver and context are matched in the order in which they were sent, whatever carries
 * them (but see ::NMAD_UNORDERED). A blocking call waits until the memory may be used again; a send does not
 * wait for the receiver unless the message is large or ::NMAD_SYNCHRONOUS.
 * @{ */

/**
 * Sends a message and waits until `data` may be used again.
 * @param to       A rank, our own too.
 * @param context  Messages of different contexts never match; below ::NMAD_CONTEXT_LIMIT.
 * @param tag      Any number; all 64 bits are the program's.
 * @param hints    May be NULL.
 * @return ::NMAD_OK, ::NMAD_ERR_RANK, ::NMAD_ERR_CONTEXT, ::NMAD_ERR_PEER.
 */
NMAD_API int nmad_send(nmad_session_t *session, uint32_t to, uint32_t context, uint64_t tag, const void *data,
                       size_t len, const nmad_hints_t *hints);

/** nmad_send() of one message whose data lies in `count` places, in their order. */
NMAD_API int nmad_sendv(nmad_session_t *session, uint32_t to, uint32_t context, uint64_t tag,
                        const struct iovec *data, size_t count, const nmad_hints_t *hints);

/**
 * Waits for a message that matches and puts it into `buffer`.
 * @param from          A rank, or ::NMAD_ANY_RANK.
 * @param flags         0 or ::NMAD_ANY_TAG.
 * @param[out] message  What came, also with ::NMAD_ERR_TRUNCATED; may be NULL.
 * @return ::NMAD_OK; ::NMAD_ERR_TRUNCATED: the first `capacity` bytes are there, the rest is lost, later messages
 *         are not touched; ::NMAD_ERR_RANK, ::NMAD_ERR_CONTEXT, ::NMAD_ERR_PEER (if `from` names one that is gone).
 */
NMAD_API int nmad_recv(nmad_session_t *session, uint32_t from, uint32_t context, uint64_t tag, uint32_t flags,
                       void *buffer, size_t capacity, nmad_message_t *message);

/** nmad_recv() that spreads the message over `count` places, in their order; they must not overlap. */
NMAD_API int nmad_recvv(nmad_session_t *session, uint32_t from, uint32_t context, uint64_t tag, uint32_t flags,
                        const struct iovec *buffers, size_t count, nmad_message_t *message);

/**
 * Starts a send. It goes on by itself, in calls of any thread and otherwise at least every millisecond.
 * @param[out] request  Must be waited for or tested until such a call returns its end, which releases it.
 * @return As nmad_send(); the request's end returns the message's result. If the call fails there is no request.
 */
NMAD_API int nmad_isend(nmad_session_t *session, uint32_t to, uint32_t context, uint64_t tag, const void *data,
                        size_t len, const nmad_hints_t *hints, nmad_request_t *request);

/** nmad_isend() of data in `count` places. */
NMAD_API int nmad_isendv(nmad_session_t *session, uint32_t to, uint32_t context, uint64_t tag,
                         const struct iovec *data, size_t count, const nmad_hints_t *hints,
                         nmad_request_t *request);

/** Starts a receive; arguments as nmad_recv(), request as nmad_isend(). */
NMAD_API int nmad_irecv(nmad_session_t *session, uint32_t from, uint32_t context, uint64_t tag, uint32_t flags,
                        void *buffer, size_t capacity, nmad_request_t *request);

/** nmad_irecv() into `count` places. */
NMAD_API int nmad_irecvv(nmad_session_t *session, uint32_t from, uint32_t context, uint64_t tag, uint32_t flags,
                         const struct iovec *buffers, size_t count, nmad_request_t *request);

/**
 * Whether a message that such a receive would take has arrived, without taking it. Another thread may.
 * @param[out] message  May be NULL.
 * @return ::NMAD_OK: it is there; ::NMAD_PENDING: none is; ::NMAD_ERR_RANK, ::NMAD_ERR_CONTEXT.
 */
NMAD_API int nmad_probe(nmad_session_t *session, uint32_t from, uint32_t context, uint64_t tag, uint32_t flags,
                        nmad_message_t *message);

/** @} */
/** @name Messages in pieces
 * A message may be built piece by piece, without a copy: the receiver takes it apart with as many pieces of its
 * own. Each piece may leave at once, with hints of its own; the first one is matched as a message of this context
 * and tag would be, the others follow it whatever else is under way. A receiver can wait for the first piece (the
 * number of a service, a length) before it says where the next one shall go. Pieces of one message are
 * numbered in the order of the calls; two threads that pack the same message must agree on it.
 * @{ */

/** Begins to build a message; end with nmad_end_packing(). Arguments as nmad_send(). */
NMAD_API int nmad_begin_packing(nmad_session_t *session, uint32_t to, uint32_t context, uint64_t tag,
                                nmad_packing_t *packing);

/**
 * Adds a piece. `data` must stay as it is until the piece has ended.
 * @param hints         May be NULL.
 * @param[out] request  The piece; NULL: nmad_end_packing() waits for it.
 * @return ::NMAD_OK, ::NMAD_ERR_MESSAGE.
 */
NMAD_API int nmad_pack(nmad_session_t *session, nmad_packing_t packing, const void *data, size_t len,
                       const nmad_hints_t *hints, nmad_request_t *request);

/**
 * Ends a message: waits for the pieces packed without a request of their own. The message is gone even if the
 * call fails.
 * @return ::NMAD_OK, ::NMAD_ERR_MESSAGE, or how the first piece that failed has ended.
 */
NMAD_API int nmad_end_packing(nmad_session_t *session, nmad_packing_t packing);

/** Begins to take a message apart; end with nmad_end_unpacking(). Arguments as nmad_recv(). */
NMAD_API int nmad_begin_unpacking(nmad_session_t *session, uint32_t from, uint32_t context, uint64_t tag,
                                  uint32_t flags, nmad_unpacking_t *unpacking);

/**
 * Receives the next piece.
 * @param[out] request  The piece; NULL: nmad_end_unpacking() waits for it.
 * @return ::NMAD_OK, ::NMAD_ERR_MESSAGE.
 */
NMAD_API int nmad_unpack(nmad_session_t *session, nmad_unpacking_t unpacking, void *buffer, size_t capacity,
                         nmad_request_t *request);

/** Ends the taking apart: waits for the pieces unpacked without a request of their own. As nmad_end_packing(). */
NMAD_API int nmad_end_unpacking(nmad_session_t *session, nmad_unpacking_t unpacking);

/** @} */
/** @name Waiting
 * These return the end of a request once; then it is released and set to ::NMAD_REQUEST_NULL. They return how
 * it ended (::NMAD_OK, ::NMAD_ERR_TRUNCATED, ::NMAD_ERR_PEER, ::NMAD_ERR_CANCELLED). ::NMAD_ERR_REQUEST: it never
 * existed, or another call has returned its end. A waiting call spins for some microseconds, then yields, then sleeps.
 * In lists, requests that are ::NMAD_REQUEST_NULL are passed over.
 * @{ */

/**
 * Waits until the request has ended.
 * @param[in,out] request  Set to ::NMAD_REQUEST_NULL when the call returns its end.
 * @param[out] message     What came or went; may be NULL. Filled with ::NMAD_OK and ::NMAD_ERR_TRUNCATED.
 */
NMAD_API int nmad_wait(nmad_session_t *session, nmad_request_t *request, nmad_message_t *message);

/** nmad_wait() for at most `timeout_ns`, or ::NMAD_FOREVER. ::NMAD_PENDING: the request goes on. */
NMAD_API int nmad_wait_for(nmad_session_t *session, nmad_request_t *request, uint64_t timeout_ns,
                           nmad_message_t *message);

/** Makes progress once and tells whether the request has ended. ::NMAD_PENDING: it goes on. */
NMAD_API int nmad_test(nmad_session_t *session, nmad_request_t *request, nmad_message_t *message);

/**
 * Waits until one of the requests has ended.
 * @param[in,out] requests  `count` requests; the one that has ended is set to ::NMAD_REQUEST_NULL.
 * @param[out] index        Its place in the list, whether it ended well or not; `count` if the call told no end.
 * @param[out] message      As nmad_wait().
 * @return How it ended; ::NMAD_ERR_REQUEST also if the list has no request.
 */
NMAD_API int nmad_wait_any(nmad_session_t *session, nmad_request_t *requests, size_t count, size_t *index,
                           nmad_message_t *message);

/** nmad_wait_any() for at most `timeout_ns`, or ::NMAD_FOREVER. ::NMAD_PENDING: all go on. */
NMAD_API int nmad_wait_any_for(nmad_session_t *session, nmad_request_t *requests, size_t count,
                               uint64_t timeout_ns, size_t *index, nmad_message_t *message);

/** Makes progress once and tells the end of one request. ::NMAD_PENDING: all go on. */
NMAD_API int nmad_test_any(nmad_session_t *session, nmad_request_t *requests, size_t count, size_t *index,
                           nmad_message_t *message);

/**
 * Waits until all requests have ended.
 * @param[in,out] requests  `count` requests; all are set to ::NMAD_REQUEST_NULL.
 * @param[out] messages     Room for `count`, in the order of the requests; may be NULL.
 * @param[out] codes        How each has ended, room for `count`; may be NULL.
 * @return ::NMAD_OK if all ended well or the list has no request, else how the first in the list that did not has
 *         ended. ::NMAD_ERR_REQUEST at once, with `codes` untouched: one of them is unknown or there twice; the
 *         others go on, and the call has returned the end of none.
 */
NMAD_API int nmad_wait_all(nmad_session_t *session, nmad_request_t *requests, size_t count,
                           nmad_message_t *messages, int *codes);

/** nmad_wait_all() for at most `timeout_ns`, or ::NMAD_FOREVER. ::NMAD_PENDING: no end was told, none is lost. */
NMAD_API int nmad_wait_all_for(nmad_session_t *session, nmad_request_t *requests, size_t count,
                               uint64_t timeout_ns, nmad_message_t *messages, int *codes);

/** Makes progress once and tells the end of all requests if all have ended. ::NMAD_PENDING: no end was told. */
NMAD_API int nmad_test_all(nmad_session_t *session, nmad_request_t *requests, size_t count,
                           nmad_message_t *messages, int *codes);

/**
 * Tries to take back a receive. Its end must still be waited for.
 * @param[out] accepted  1: it ends with ::NMAD_ERR_CANCELLED, or with its message if that is on its way already;
 *                       0: it is matched, or a send, and ends as if nobody had asked. May be NULL.
 * @return ::NMAD_OK, ::NMAD_ERR_REQUEST.
 */
NMAD_API int nmad_cancel(nmad_session_t *session, nmad_request_t request, int *accepted);

/** @} */
/** @name Loops of your own
 * Messages make progress in every call that waits or tests, and otherwise in a thread of the library: on a core that is
 * idle as they come, else about every millisecond; see nmad_set_progress(). A program that has a loop of its own turns
 * the library with nmad_progress() or nmad_test(). To sleep in poll(2), epoll(7) or select(2) on this and other things,
 * test all requests, then
 *
 *     while (nmad_arm(session, &timeout_ns) == NMAD_BUSY) test all requests again;
 *     poll(fds, count, timeout_ns);   // with nmad_fd() among fds, to be readable
 *
 * which misses no end of any request. nmad_wait_any_for() is the simpler way where there is nothing else to wait for.
 * @{ */

/** Makes progress once. ::NMAD_OK: something has moved; ::NMAD_PENDING: nothing has. */
NMAD_API int nmad_progress(nmad_session_t *session);

/**
 * Chooses what moves messages while the program computes, as the setting progress does.
 * @param progress  "off", "auto", "idle" or "dedicated:CORES" (for example "dedicated:2-3,7"), see progress.md.
 * @return ::NMAD_OK; ::NMAD_ERR_SETTING: it is none of these, or this process may not run on such a core.
 */
NMAD_API int nmad_set_progress(nmad_session_t *session, const char *progress);

/**
 * A descriptor that becomes readable when there is something to do, once nmad_arm() has been called.
 * @param[out] fd  Belongs to the session; to be polled only, neither read nor closed. Always the same.
 * @return ::NMAD_OK, ::NMAD_ERR_SYSTEM.
 */
NMAD_API int nmad_fd(nmad_session_t *session, int *fd);

/**
 * Makes progress once and prepares the descriptor for one sleep.
 * @param[out] timeout_ns  With ::NMAD_OK: sleep no longer than this before the next call. At most 50 ms, less where a
 *                         network has no descriptor or a timer of its own.
 * @return ::NMAD_OK: sleep; ::NMAD_BUSY: something has happened, test the requests first; ::NMAD_ERR_SYSTEM.
 */
NMAD_API int nmad_arm(nmad_session_t *session, uint64_t *timeout_ns);

/** @} */
/** @name Strategies and rails @{ */

/**
 * Chooses what decides which rail carries what.
 * @param rank  For messages to this rank, or to all with ::NMAD_ANY_RANK.
 * @param name  See nmad_strategy_name().
 * @return ::NMAD_OK, ::NMAD_ERR_RANK, ::NMAD_ERR_SETTING.
 */
NMAD_API int nmad_set_strategy(nmad_session_t *session, uint32_t rank, const char *name);

/** The name of a strategy, from index 0 on; NULL behind the last one. It never changes. */
NMAD_API const char *nmad_strategy_name(size_t index);

/** The number of a strategy in this session, for nmad_hints_t::strategy. ::NMAD_ERR_SETTING: there is none. */
NMAD_API int nmad_strategy_number(nmad_session_t *session, const char *name, uint32_t *strategy);

/** Chooses when rails are fed: "accumulate", "prepare" or "backlog:BYTES", see tune.md. */
NMAD_API int nmad_set_feed(nmad_session_t *session, const char *feed);

/** Something that waits for a rank. */
typedef struct nmad_waiting {
    uint64_t tag;     /**< Tag. */
    uint64_t len;     /**< Bytes of the message; of a large one all of them, though it is shared out later. */
    uint64_t size;    /**< Bytes that it takes in a packet. */
    uint32_t context; /**< Context. */
    uint32_t seq;     /**< Its place among the messages of its context to this rank; 0 for unordered ones. */
    int32_t priority; /**< Higher goes first. */
    uint32_t flags;   /**< ::NMAD_DEPENDS, ::NMAD_LATENCY, ::NMAD_BANDWIDTH; ::NMAD_CONTROL. */
} nmad_waiting_t;

/** Flag of what waits: a control message of the library; it has a size and a priority only. */
#define NMAD_CONTROL 64u

/** What was measured of a rail: for nmad_predict(). */
typedef struct nmad_forecast nmad_forecast_t;
struct nmad_forecast {
    /** Nanoseconds for `len` bytes. */
    uint64_t (*ns)(const nmad_forecast_t *forecast, uint64_t len, int large);
    const void *of; /**< The library's. */
};

/** A rail to a rank, at the moment of a decision. */
typedef struct nmad_way {
    uint32_t rail;        /**< Its number, see nmad_rail_info(). */
    uint32_t wire;        /**< The first of the rails over the same network card. */
    uint64_t idle_in_ns;  /**< When it will have carried what it was given; 0: it is idle. */
    uint64_t bandwidth;   /**< Nominal, in bytes per second, 0: unknown. */
    uint64_t latency_ns;  /**< Nominal, 0: unknown. */
    uint32_t flags;       /**< ::NMAD_WAY_PRIMARY, ::NMAD_WAY_FASTEST. */
    uint32_t reserved;    /**< Zero. */
    const nmad_forecast_t *forecast; /**< What was measured: for nmad_predict(). */
} nmad_way_t;

/** Flag of ways: the first rail to the rank. */
#define NMAD_WAY_PRIMARY 1u
/** Flag of ways: the one with the lowest latency. One rail is always that. */
#define NMAD_WAY_FASTEST 2u

/** A rank for which something waits. */
typedef struct nmad_turn {
    uint32_t rank;    /**< Which one. */
    int32_t priority; /**< Priority of what waits first. */
    uint64_t backlog; /**< Bytes that wait. */
    uint64_t granted; /**< Bytes of large messages that its receives wait for. */
} nmad_turn_t;

/**
 * A strategy of the program's own, or of a plug-in: what decides when a rail is idle. Its functions are called while the
 * library holds its lock: they must be short, must not wait, and call nothing of this library but nmad_predict().
 * One that answers nonsense is named on standard error, and "auto" decides for that rank from then on; one that
 * does not come back ends the process after some seconds.
 */
typedef struct nmad_strategy {
    size_t size;      /**< sizeof(nmad_strategy_t). */
    const char *name; /**< By which it is chosen. Copied. */
    void *state;      /**< Given to each function; may be NULL. Must live as long as the sessions. */
    /**
     * Fills the next packet of a rail from a list of `count` things that wait for a rank, by priority and then by
     * submission. Writes their places in that list into `chosen`, in the order in which they shall go, and returns
     * how many those are; 0: nothing for this rail now; SIZE_MAX: it has failed. What does not fit into `room` bytes
     * stays, but for the first one, which always goes. Whatever one rail leaves, another must take; what only this rail
     * may carry leaves on it even if it is not chosen.
     */
    size_t (*fill)(void *state, uint32_t rank, const nmad_way_t *rail, const nmad_waiting_t *waiting,
                   size_t count, uint64_t room, size_t *chosen);
    /**
     * How many of the `len` bytes of a large message each of `count` rails carries; they must add up to `len`.
     * Returns ::NMAD_OK; or ::NMAD_PENDING: whichever rail is idle first shall carry all of it; or a negative code: it has
     * failed.
     */
    int (*split)(void *state, uint32_t rank, uint64_t len, const nmad_way_t *ways, size_t count,
                 uint64_t *shares);
    /** The receiver has all of a message that was shared out among so many rails. May be NULL. */
    void (*carried)(void *state, uint32_t rank, uint64_t len, size_t ways, uint64_t took_ns);
    /**
     * Whose turn it is on a rail: a place in the list; `count`: the rank that has waited longest. Asked of the strategy of
     * the session, where something waits for several ranks. May be NULL.
     */
    size_t (*choose)(void *state, uint32_t rail, const nmad_turn_t *ranks, size_t count);
    /**
     * Transfers to the rank have shown that a rail carries otherwise than was known: predictions have changed, and what the
     * strategy has observed until now says nothing any more. May be NULL.
     */
    void (*relearnt)(void *state, uint32_t rank);
} nmad_strategy_t;

/**
 * Adds a strategy for sessions that are opened from now on, which choose it by its name like any other: as the setting
 * "strategy", with nmad_set_strategy(), or for single messages. A later one of the same name wins.
 * @return ::NMAD_OK, ::NMAD_ERR_ARGUMENT.
 */
NMAD_API int nmad_register_strategy(const nmad_strategy_t *strategy);

/**
 * The predicted time that a rail takes for `len` bytes once it is idle. For functions of a strategy, with the ways that they
 * were given. It asks the library that has called them, so a plug-in is linked with no library.
 * @param large    0: for a message in a packet; else for a part of a large message.
 * @param[out] ns  Nanoseconds.
 * @return ::NMAD_OK, ::NMAD_ERR_ARGUMENT.
 */
static inline int nmad_predict(const nmad_way_t *way, uint64_t len, int large, uint64_t *ns) {
    if (way == NULL || way->forecast == NULL || ns == NULL)
        return NMAD_ERR_ARGUMENT;
    *ns = way->forecast->ns(way->forecast, len, large);
    return NMAD_OK;
}

/**
 * Version of the interface between the library and a plug-in. Another one means that plug-ins must be compiled again.
 * Functions that are added at the end of ::nmad_strategy_t do not change it: the library takes tables of all sizes that
 * it knows.
 */
#define NMAD_PLUGIN_ABI 1u

/** The strategies of a plug-in: a shared library that NMAD_STRATEGY=FILE:NAME loads into any program, see strategy.md. */
typedef struct nmad_plugin {
    uint32_t abi;                      /**< ::NMAD_PLUGIN_ABI. */
    uint32_t count;                    /**< How many strategies there are. */
    const char *version;               /**< Of the plug-in, for `nmad info`; may be NULL. */
    const nmad_strategy_t *strategies; /**< They. All of this must live as long as the process. */
} nmad_plugin_t;

/** The function that a plug-in defines; no program and no library does. It must not wait. */
NMAD_PLUGIN const nmad_plugin_t *nmad_strategies(void);

/** Rails of this process, the one to itself included; it does not change. They are numbered from 0. */
NMAD_API int nmad_rail_count(nmad_session_t *session, uint32_t *count);

/**
 * What a rail is and what it has carried so far.
 * @param[out] info  Filled up to `size`.
 * @param size       sizeof(nmad_rail_info_t). A later version may know more; it gives what the program has room
 *                   for, and zero for what it does not know.
 * @return ::NMAD_OK, ::NMAD_ERR_ARGUMENT if there is no such rail.
 */
NMAD_API int nmad_rail_info(nmad_session_t *session, uint32_t rail, nmad_rail_info_t *info, size_t size);

/** @} */

#ifdef __cplusplus
}
#endif

#endif /* NMAD_H */
