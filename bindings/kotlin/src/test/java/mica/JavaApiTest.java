package mica;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The API as a Java program uses it: no coroutines in sight. */
class JavaApiTest {
    @Test
    void generates() {
        try (Engine engine = new Engine()) {
            engine.loadBlocking(new ModelSource.File(TestingKt.getScripted().getPath()), new EngineOptions(512, 1));
            StringBuilder text = new StringBuilder();
            List<GenEvent> others = new ArrayList<>();
            engine.generateBlocking(GenRequest.prompt("E").withSampling(Sampling.GREEDY).withMaxTokens(20), event -> {
                if (event instanceof GenEvent.Token token) {
                    text.append(token.getText());
                } else {
                    others.add(event);
                }
            });
            assertEquals("Hi 🙂!", text.toString());
            GenEvent.Done done = (GenEvent.Done) others.get(others.size() - 1);
            assertEquals("eos", done.getFinishReason());
            assertTrue(done.getTimings().getTtftMs() > 0);
            assertEquals(EngineState.Ready.INSTANCE, engine.getState().getValue());
        }
    }

    @Test
    void exceptionsOfAConsumerStopTheReply() {
        try (Engine engine = new Engine()) {
            engine.loadBlocking(new ModelSource.File(TestingKt.getScripted().getPath()), new EngineOptions(512, 1));
            GenRequest request = GenRequest.prompt("X").withSampling(Sampling.GREEDY);
            assertThrows(UnsupportedOperationException.class, () -> engine.generateBlocking(request, event -> {
                throw new UnsupportedOperationException("enough");
            }));
            List<GenEvent> events = new ArrayList<>();
            engine.generateBlocking(request.withMaxTokens(3), events::add);
            assertEquals(4, events.size());
        }
    }

    @Test
    void failuresAreTyped() {
        try (Engine engine = new Engine()) {
            MicaException e = assertThrows(MicaException.class, () -> engine.loadBlocking(new ModelSource.File("no such file")));
            assertEquals(ErrorCode.IO_ERROR, e.getCode());
        }
    }
}
