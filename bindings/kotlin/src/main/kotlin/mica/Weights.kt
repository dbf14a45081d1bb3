package mica

import java.io.File
import java.io.IOException
import java.io.RandomAccessFile
import java.net.HttpURLConnection
import java.net.URL
import java.nio.channels.OverlappingFileLockException
import java.nio.file.Files
import java.nio.file.StandardCopyOption
import java.security.MessageDigest
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.delay
import kotlinx.coroutines.ensureActive
import kotlinx.coroutines.withContext

/** A model's file on a server: [sha256] in hex decides whether what came is right. [token]: for the server of [url] alone, never for
 * one that it redirects to. */
data class Weights @JvmOverloads constructor(val url: String, val sha256: String, val token: String? = null)

/**
 * Fetches weights into [file], which is there only if its checksum is right; if it is there already, nothing is fetched. What came so far
 * is in FILE.part, with the server's mark of the version in FILE.part.from: a later call goes on from there, also after the process was
 * killed. A server that fails is asked again up to [tries] times without progress. Cancelling stops it at the next block, or after
 * the 30 s in which a silent connection is given up. Throws [MicaException].
 */
suspend fun Weights.fetch(file: File, tries: Int = 5, onProgress: (done: Long, total: Long) -> Unit = { _, _ -> }): File =
    withContext(Dispatchers.IO) {
        if (!file.exists()) Fetching(this@fetch, file, onProgress).use { it.run(tries) }
        file
    }

/** May be tried again. */
private class Interrupted(message: String) : IOException(message)

private fun failed(code: ErrorCode, message: String): Nothing = throw MicaException(code, message)

private class Fetching(private val weights: Weights, private val file: File, private val onProgress: (Long, Long) -> Unit) : AutoCloseable {
    private val from = File("$file.part.from")
    private val partFile = File("$file.part")
    private val part = RandomAccessFile(partFile, "rw")

    init {
        val alone = try {
            part.channel.tryLock()
        } catch (e: OverlappingFileLockException) {
            null
        }
        if (alone == null) {
            part.close()
            failed(ErrorCode.REFUSED, "$file is being fetched already")
        }
    }

    override fun close() = part.close() // and with it the lock

    suspend fun run(tries: Int) {
        var failures = 0
        var restarts = 0
        while (true) {
            val before = part.length()
            try {
                if (before == 0L || !isRight()) request(before)
                if (isRight()) return finish()
                if (++restarts > 1) failed(ErrorCode.BAD_FILE, "what ${weights.url} sent does not have the checksum ${weights.sha256}")
                startOver() // what was there from an earlier time may have been wrong
            } catch (e: Interrupted) {
                failures = if (part.length() > before) 0 else failures + 1
                if (failures >= tries) failed(ErrorCode.IO_ERROR, "${weights.url}: ${e.message}; what came is kept in $partFile")
                delay(if (failures == 0) 50L else 250L shl failures.coerceAtMost(6))
            } catch (e: IOException) {
                failed(ErrorCode.IO_ERROR, "cannot fetch ${weights.url}: ${e.message}")
            }
        }
    }

    private fun finish() {
        part.channel.force(true)
        Files.move(partFile.toPath(), file.toPath(), StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING)
        from.delete()
    }

    private fun startOver() {
        part.setLength(0)
        from.delete()
    }

    private suspend fun isRight(): Boolean {
        val sum = MessageDigest.getInstance("SHA-256")
        val block = ByteArray(BLOCK)
        part.seek(0)
        while (true) {
            val n = part.read(block)
            if (n < 0) break
            sum.update(block, 0, n)
            currentCoroutineContext().ensureActive()
        }
        return sum.digest().joinToString("") { "%02x".format(it) }.equals(weights.sha256, ignoreCase = true)
    }

    private suspend fun request(offset: Long) {
        val connection = connect(offset)
        try {
            when (val code = connection.responseCode) {
                200 -> {
                    startOver()
                    connection.getHeaderField("ETag")?.let(from::writeText)
                    receive(connection, 0)
                }
                206 -> {
                    if (!connection.getHeaderField("Content-Range").orEmpty().startsWith("bytes $offset-")) {
                        startOver()
                        throw Interrupted("the server sent another part of the file than the one asked for")
                    }
                    receive(connection, offset)
                }
                416 -> Unit // all of it is here, or too much; the checksum tells
                408, 429, in 500..599 -> throw Interrupted("the server answered with status $code")
                else -> failed(ErrorCode.IO_ERROR, "${weights.url}: the server answered with status $code")
            }
        } finally {
            connection.disconnect()
        }
    }

    /** Follows redirects: Java's own way would take the token along. */
    private fun connect(offset: Long): HttpURLConnection {
        var url = URL(weights.url)
        val origin = url.authority
        repeat(REDIRECTS + 1) {
            val connection = open(url, offset, url.authority == origin)
            val code = try {
                connection.responseCode
            } catch (e: IOException) {
                throw Interrupted("$e")
            }
            if (code !in REDIRECT) return connection
            val next = URL(url, connection.getHeaderField("Location") ?: failed(ErrorCode.IO_ERROR, "$url redirects to nowhere"))
            connection.disconnect()
            if (url.protocol == "https" && next.protocol != "https") failed(ErrorCode.REFUSED, "$url redirects to a place without encryption")
            url = next
        }
        failed(ErrorCode.IO_ERROR, "${weights.url} redirects more than $REDIRECTS times")
    }

    private fun open(url: URL, offset: Long, mayKnowToken: Boolean): HttpURLConnection {
        val connection = url.openConnection() as? HttpURLConnection
            ?: failed(ErrorCode.INVALID_ARGUMENT, "$url is no address of a web server")
        connection.instanceFollowRedirects = false
        connection.connectTimeout = TIMEOUT_MS
        connection.readTimeout = TIMEOUT_MS
        connection.setRequestProperty("Accept-Encoding", "identity")
        if (weights.token != null && mayKnowToken) connection.setRequestProperty("Authorization", "Bearer ${weights.token}")
        if (offset > 0) connection.setRequestProperty("Range", "bytes=$offset-")
        if (offset > 0 && from.exists()) connection.setRequestProperty("If-Range", from.readText())
        return connection
    }

    private suspend fun receive(connection: HttpURLConnection, offset: Long) {
        val length = connection.contentLengthLong
        if (length > partFile.absoluteFile.parentFile.usableSpace) failed(ErrorCode.IO_ERROR, "no room for $length more bytes of $file")
        val total = if (length < 0) -1 else offset + length
        val block = ByteArray(BLOCK)
        var done = offset
        part.seek(offset)
        while (true) {
            currentCoroutineContext().ensureActive()
            val n = try {
                connection.inputStream.read(block)
            } catch (e: IOException) {
                throw Interrupted("the connection broke: ${e.message}")
            }
            if (n < 0) break
            part.write(block, 0, n)
            done += n
            onProgress(done, total)
        }
        if (done < total) throw Interrupted("the connection ended after $done of $total bytes")
    }

    private companion object {
        const val BLOCK = 1 shl 16
        const val TIMEOUT_MS = 30_000
        const val REDIRECTS = 10
        val REDIRECT = setOf(301, 302, 303, 307, 308)
    }
}
